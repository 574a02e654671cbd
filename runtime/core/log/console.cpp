#include "runtime/core/log/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <streambuf>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shown_text.h"

namespace stepop {
namespace {

std::string now_text() { return local_time("%Y-%m-%d %H:%M:%S%z"); }

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

/// Handles output to the terminal that does not come from the console.
class Console::Others {
 public:
  explicit Others(Console& console);

 private:
  class PassingBuffer;
  class PassingFile;

  std::unique_ptr<PassingBuffer> out_, error_, log_;
  std::unique_ptr<PassingFile> file_;
};

/// Forwards output to a C++ stream after removing the progress bar.
class Console::Others::PassingBuffer : public std::streambuf {
 public:
  PassingBuffer(std::ostream& stream, Console& console)
      : stream_(stream), console_(console), target_(stream.rdbuf()) {
    stream_.rdbuf(this);
  }
  ~PassingBuffer() override {
    if (stream_.rdbuf() == this) stream_.rdbuf(target_);
  }
  PassingBuffer(const PassingBuffer&) = delete;
  PassingBuffer& operator=(const PassingBuffer&) = delete;

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    console_.make_way({text, static_cast<size_t>(size)});
    return target_->sputn(text, size);
  }
  int_type overflow(int_type letter) override {
    if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
    const char c = traits_type::to_char_type(letter);
    return xsputn(&c, 1) == 1 ? letter : traits_type::eof();
  }
  int sync() override { return target_->pubsync(); }

 private:
  std::ostream& stream_;
  Console& console_;
  std::streambuf* target_;
};

/// The same for C's stdout. Forwards whole lines, and flushed output.
class Console::Others::PassingFile {
 public:
  explicit PassingFile(Console& console) : console_(console), target_(stdout) {
    cookie_io_functions_t functions{};
    functions.write = [](void* self, const char* text, size_t size) {
      return static_cast<PassingFile*>(self)->write({text, size});
    };
    file_ = fopencookie(this, "w", functions);
    if (file_ == nullptr) return;
    std::setvbuf(file_, nullptr, _IOLBF, BUFSIZ);
    stdout = file_;
  }
  ~PassingFile() {
    if (file_ == nullptr) return;
    if (stdout == file_) stdout = target_;
    std::fclose(file_);
  }
  PassingFile(const PassingFile&) = delete;
  PassingFile& operator=(const PassingFile&) = delete;

 private:
  ssize_t write(std::string_view text) {
    console_.make_way(text);
    const size_t written = std::fwrite(text.data(), 1, text.size(), target_);
    return std::fflush(target_) == 0 ? static_cast<ssize_t>(written) : 0;
  }

  Console& console_;
  std::FILE* target_;
  std::FILE* file_ = nullptr;
};

Console::Others::Others(Console& console) {
  if (isatty(STDOUT_FILENO) != 0) {
    out_ = std::make_unique<PassingBuffer>(std::cout, console);
    file_ = std::make_unique<PassingFile>(console);
  }
  if (isatty(STDERR_FILENO) != 0) {
    error_ = std::make_unique<PassingBuffer>(std::cerr, console);
    log_ = std::make_unique<PassingBuffer>(std::clog, console);
  }
}

Console::Console(LogLevel level, std::FILE* out)
    : level_(level), out_{out}, is_terminal_(is_smart_terminal(out)) {
  if (is_terminal_) others_ = std::make_unique<Others>(*this);
}

Console::~Console() {
  others_.reset();
  end_progress();
}

void Console::Stream::print(std::string_view text) {
  if (is_gone) return;
  if (std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0) {
    return;
  }
  // A reader that is only slow may read again.
  is_gone = errno != EAGAIN && errno != EINTR;
  std::clearerr(file);
}

void Console::line(LogLevel level, std::string_view text) {
  if (level < level_) return;
  const std::string prefix = level == LogLevel::kWarning ? "warning: " : "";
  const std::string clean = prefix + shown_text(text);
  {
    const std::lock_guard lock(screen_);
    clear_bar();
    end_foreign_line();
    Stream& target = level >= LogLevel::kWarning ? error_ : out_;
    target.print(clean + "\n");
  }
  write_file(fmt::format("{} {}\n", now_text(), clean));
}

void Console::detail(std::string_view text) {
  if (level_ > LogLevel::kInfo) return;
  if (!is_terminal_ || level_ == LogLevel::kDebug) return info(text);
  record(text);
}

void Console::record(std::string_view text) {
  write_file(fmt::format("{} {}\n", now_text(), shown_text(text)));
}

void Console::progress(std::string_view text) {
  if (!is_terminal_ || level_ > LogLevel::kInfo) return;
  const std::lock_guard lock(screen_);
  if (is_in_foreign_line_) return;
  out_.print(fmt::format("\r{}\x1b[K", text));
  has_progress_ = true;
}

void Console::end_progress() {
  const std::lock_guard lock(screen_);
  clear_bar();
  end_foreign_line();
}

void Console::make_way(std::string_view text) {
  if (text.empty()) return;
  const std::lock_guard lock(screen_);
  clear_bar();
  is_in_foreign_line_ = text.back() != '\n';
}

void Console::clear_bar() {
  if (!has_progress_) return;
  out_.print("\r\x1b[K");
  has_progress_ = false;
}

/// Ends another writer's unfinished line, so that our line, or main()'s, starts on a new line.
void Console::end_foreign_line() {
  if (is_in_foreign_line_) out_.print("\n");
  is_in_foreign_line_ = false;
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
