#include "runtime/log/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/error.h"
#include "runtime/log/number_text.h"

namespace stepop {
namespace {

std::string now_text() { return local_time("%Y-%m-%d %H:%M:%S"); }

/// What a file must not hold: everything below space but tab and newline.
std::string without_controls(std::string_view text) {
  std::string clean;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') clean += c;
  }
  return clean;
}

bool is_smart_terminal(std::FILE* out) {
  const char* kind = std::getenv("TERM");
  return isatty(fileno(out)) != 0 && kind != nullptr && std::strcmp(kind, "dumb") != 0;
}

}  // namespace

LogLevel parse_log_level(const std::string& text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warn" || text == "warning") return LogLevel::kWarning;
  if (text == "critical") return LogLevel::kCritical;
  throw UsageError(
      fmt::format("-l: unknown log level \"{}\"; there are debug, info, warn, critical", text));
}

Console::Console(LogLevel level, std::FILE* out)
    : level_(level), out_(out), is_terminal_(is_smart_terminal(out)) {}

Console::~Console() {
  end_progress();
  if (file_ >= 0) ::close(file_);
}

void Console::line(LogLevel level, std::string_view text) {
  if (level < level_) return;
  end_progress();
  const std::string prefix = level == LogLevel::kWarning ? "warning: " : "";
  const std::string clean = prefix + without_controls(text);
  std::FILE* target = level >= LogLevel::kWarning ? stderr : out_;
  fmt::print(target, "{}\n", clean);
  std::fflush(target);
  write_file(fmt::format("{} {}\n", now_text(), clean));
}

void Console::detail(std::string_view text) {
  if (level_ > LogLevel::kInfo) return;
  if (!is_terminal_) return info(text);
  record(text);
}

void Console::record(std::string_view text) {
  write_file(fmt::format("{} {}\n", now_text(), without_controls(text)));
}

void Console::progress(std::string_view text) {
  if (!is_terminal_ || level_ > LogLevel::kInfo) return;
  fmt::print(out_, "\r{}\x1b[K", text);
  std::fflush(out_);
  has_progress_ = true;
}

void Console::end_progress() {
  if (!has_progress_) return;
  fmt::print(out_, "\r\x1b[K");
  std::fflush(out_);
  has_progress_ = false;
}

int Console::width() const {
  winsize size{};
  if (ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void Console::open_log_file(const std::string& path) {
  file_path_ = path;
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0)
    throw Error(fmt::format("{}: cannot open the log: {}", path, std::strerror(errno)));
  for (const auto& text : before_file_) write_file(text);
  before_file_.clear();
}

void Console::write_file(const std::string& text) {
  if (file_ < 0) {
    before_file_.push_back(text);
    return;
  }
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int reason = errno;
      ::close(std::exchange(file_, -1));
      throw Error(fmt::format("{}: cannot write the log: {}", file_path_, std::strerror(reason)));
    }
    done += static_cast<size_t>(count);
  }
}

}  // namespace stepop
