#pragma once

#include <functional>
#include <string>

#include "runtime/core/system/file_calls.h"

namespace stepop {

/// What came of trying to lock a file.
enum class Locked {
  kYes,      ///< It is ours until the file is closed.
  kHeld,     ///< Another process, or another opening of the file, holds it.
  kUnknown,  ///< It cannot be locked: some network file systems have no locks. `errno` says why.
};

/// Locks an open file (`flock`) against every other opening of it, without waiting. A shared lock
/// keeps out only those that are not shared. The kernel releases it with the file, so a process
/// that was killed holds none.
Locked try_lock(const OpenFile& file, bool is_shared = false);

/// Holds a file locked against other processes, and waits until they let it go. The file is made
/// when it is missing, and stays.
class FileLock {
 public:
  /// Calls `waiting` several times a second while another process holds it; what that throws
  /// passes. Throws Error with the path and the reason.
  explicit FileLock(const std::string& path, const std::function<void()>& waiting = {});

 private:
  OpenFile file_;
};

}  // namespace stepop
