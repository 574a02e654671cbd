#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "runtime/core/system/file_calls.h"

namespace stepop {

/// A file of lines that only grows. Each `append` is one write at its end, so several processes may
/// append to one file, and a killed one loses at most its last line. A last line that was left
/// without an end - by a killed process, a full disk - is ended before the first append.
///
/// The file itself is never a symbolic link, behind which it could be anybody's. Every failed call
/// throws Error with the operation, the path and the system's reason.
class AppendFile {
 public:
  /// Opens the file, or creates it; the folder must exist.
  explicit AppendFile(std::string path);

  /// Appends one or several whole lines, all or nothing: what a full disk took of them is taken
  /// back, so that the file still ends with a whole line. The next append may succeed again.
  void append(std::string_view lines);

  /// Looks whether the file is still what its path names. One that was removed is written anew,
  /// with all that it held; where it was replaced by another file, that one is appended to from
  /// here on. Returns a text that says so; empty when all is well.
  std::string mend();

  /// Returns when what was appended is on the disk, and the file's name in its folder.
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
