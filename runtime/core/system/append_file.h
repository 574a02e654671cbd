#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "runtime/core/system/file_calls.h"

namespace stepop {

/// A file of lines that only grows. Each `append` is one write at the end, so several processes may
/// append to one file, and a killed process loses at most its last line. If a killed process or a
/// full disk left an incomplete last line, a newline is added before the first append.
///
/// The file must not be a symbolic link, which could lead to another user's file. Every failed call
/// throws Error with the operation, the path and the system's reason.
class AppendFile {
 public:
  /// Opens the file, or creates it; the folder must exist.
  explicit AppendFile(std::string path);

  /// Appends one or several complete lines, all or nothing: if the disk is full, a partial write is
  /// removed, so that the file still ends with a complete line. The next append may succeed again.
  void append(std::string_view lines);

  /// Checks whether the path still leads to the file. A removed file is written again with all its
  /// lines. If another file has replaced it, later lines are appended to the new file. Returns a
  /// text about this; empty when nothing happened.
  std::string mend();

  /// Returns when all appended lines, and the file's name in its folder, are on the disk.
  void sync();

  const std::string& path() const { return path_; }

 private:
  off_t size() const;
  bool take_back(off_t before, off_t written);

  std::string path_;
  OpenFile file_;
  bool ends_in_mid_line_ = false;
  bool name_is_flushed_ = false;
};

}  // namespace stepop
