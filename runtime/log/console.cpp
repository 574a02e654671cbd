#include "runtime/log/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"

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
    : level_(level), out_{out}, is_terminal_(is_smart_terminal(out)) {}

Console::~Console() { end_progress(); }

void Console::Stream::print(std::string_view text) {
  if (is_gone) return;
  if (std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0) {
    return;
  }
  // A reader that is only slow comes back.
  is_gone = errno != EAGAIN && errno != EINTR;
  std::clearerr(file);
}

void Console::line(LogLevel level, std::string_view text) {
  if (level < level_) return;
  end_progress();
  const std::string prefix = level == LogLevel::kWarning ? "warning: " : "";
  const std::string clean = prefix + without_controls(text);
  Stream& target = level >= LogLevel::kWarning ? error_ : out_;
  target.print(clean + "\n");
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
  out_.print(fmt::format("\r{}\x1b[K", text));
  has_progress_ = true;
}

void Console::end_progress() {
  if (!has_progress_) return;
  out_.print("\r\x1b[K");
  has_progress_ = false;
}

int Console::width() const {
  winsize size{};
  if (ioctl(fileno(out_.file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void Console::open_log_file(const std::string& path) {
  file_.emplace(path);
  is_before_file_ = false;
  write_file(before_file_);
  before_file_.clear();
}

void Console::write_file(const std::string& text) {
  if (is_before_file_) {
    before_file_ += text;
    return;
  }
  if (!file_) return;
  try {
    file_->append(text);
  } catch (const Error&) {
    file_.reset();
    throw;
  }
}

}  // namespace stepop
