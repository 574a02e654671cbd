#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/system/append_file.h"

namespace stepop {

/// `kDebug` also shows the lines that otherwise only go to the log file, and which files are
/// written.
enum class LogLevel { kDebug, kInfo, kWarning, kCritical };

/// `debug`, `info`, `warn` or `critical`; throws UsageError for another word.
LogLevel parse_log_level(const std::string& text);

/// Lines for the user: on the console and, once a run has its folder, in its log file. On a
/// terminal a progress bar is below the lines; a pipe or a file never gets a control character.
/// Other output to a terminal, by std::cout, std::cerr, std::clog or C's stdout, removes the bar
/// first.
///
/// A terminal or a pipe without a reader is not an error: the lines still go to the log file. A log
/// file that cannot be written is an error: the call that finds it throws Error, once, and from
/// then on the lines only go to the console.
class Console {
 public:
  explicit Console(LogLevel level = LogLevel::kInfo, std::FILE* out = stdout);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void debug(std::string_view text) { line(LogLevel::kDebug, text); }
  void info(std::string_view text) { line(LogLevel::kInfo, text); }
  void warn(std::string_view text) { line(LogLevel::kWarning, text); }

  /// A line for the log file, and for a console without a progress bar or with the level debug.
  void detail(std::string_view text);

  /// A line for the log file only.
  void record(std::string_view text);

  /// Replaces the progress line; only on a terminal.
  void progress(std::string_view text);
  /// Removes the progress line.
  void end_progress();
  /// Removes the progress line because another writer prints `text`; the bar returns after the end
  /// of that writer's line. May be called in any thread.
  void make_way(std::string_view text);

  bool is_terminal() const { return is_terminal_; }
  /// The terminal's width in columns; 80 if it is unknown.
  int width() const;

  /// From now on also appends to the file, beginning with all earlier lines.
  void open_log_file(const std::string& path);
  /// Calls AppendFile::mend for the log file.
  std::string mend_log_file() { return file_ ? file_->mend() : ""; }

 private:
  /// A terminal, pipe or file; silent once its reader is gone.
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
  std::mutex screen_;  ///< Protects the next two members and the output.
  bool has_progress_ = false;
  bool is_in_foreign_line_ = false;  ///< Another writer's last line has no newline yet.
  bool is_before_file_ = true;
  std::string before_file_;
  std::optional<AppendFile> file_;  // empty when the file could not be written
  std::unique_ptr<Others> others_;
};

}  // namespace stepop
