#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/system/append_file.h"

namespace stepop {

/// `kDebug` shows what is otherwise in the log file alone, and which files are written.
enum class LogLevel { kDebug, kInfo, kWarning, kCritical };

/// `debug`, `info`, `warn` or `critical`; throws UsageError for another word.
LogLevel parse_log_level(const std::string& text);

/// Lines for people: on the console and, once a run has its folder, in its log file. A progress bar
/// stands below them on a terminal; a pipe or a file never gets a control character. What others
/// print to a terminal, by std::cout, std::cerr, std::clog or C's stdout, takes the bar away first.
///
/// A terminal or a pipe that nobody reads any more is not an error: the lines still go to the log
/// file. A log file that cannot be written is one: the Error is thrown once, by the call that found
/// it, and from then on the lines go to the console alone.
class Console {
 public:
  explicit Console(LogLevel level = LogLevel::kInfo, std::FILE* out = stdout);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void debug(std::string_view text) { line(LogLevel::kDebug, text); }
  void info(std::string_view text) { line(LogLevel::kInfo, text); }
  void warn(std::string_view text) { line(LogLevel::kWarning, text); }

  /// For the log file, and for a console that shows no progress bar or has the level debug.
  void detail(std::string_view text);

  /// For the log file alone.
  void record(std::string_view text);

  /// Shows one line in place of the last one: on a terminal only.
  void progress(std::string_view text);
  /// Takes the progress line away.
  void end_progress();
  /// Takes it away because somebody else prints `text`; the bar comes back once that has ended its
  /// line. May be called in any thread.
  void make_way(std::string_view text);

  bool is_terminal() const { return is_terminal_; }
  /// The terminal's width in columns; 80 when it does not say.
  int width() const;

  /// Appends to the file from here on, first what was said before.
  void open_log_file(const std::string& path);
  /// As AppendFile::mend, of that file.
  std::string mend_log_file() { return file_ ? file_->mend() : ""; }

 private:
  /// Where people read; silent once they are gone.
  struct Stream {
    std::FILE* file;
    bool is_gone = false;

    void print(std::string_view text);
  };
  class Others;

  void line(LogLevel level, std::string_view text);
  void write_file(const std::string& text);
  void clear_bar();
  void end_foreign_line();

  LogLevel level_;
  Stream out_;
  Stream error_{stderr};
  bool is_terminal_;
  std::mutex screen_;  ///< Guards the two below and what is printed.
  bool has_progress_ = false;
  bool is_in_foreign_line_ = false;  ///< Somebody printed text without a newline at its end.
  bool is_before_file_ = true;
  std::string before_file_;
  std::optional<AppendFile> file_;  // empty when it could not be written
  std::unique_ptr<Others> others_;
};

}  // namespace stepop
