#pragma once

#include <functional>
#include <string>

#include "runtime/core/system/file_calls.h"

namespace stepop {

/// The result of an attempt to lock a file.
enum class Locked {
  kYes,      ///< Locked for us until the file is closed.
  kHeld,     ///< Another process, or another open file of this process, holds the lock.
  kUnknown,  ///< Locking is impossible: some network file systems have no locks. `errno` says why.
};

/// Locks an open file (`flock`) against every other open file on it, without waiting. A shared lock
/// only keeps out exclusive locks. The kernel releases the lock when the file is closed, so a
/// killed process holds no lock.
Locked try_lock(const OpenFile& file, bool is_shared = false);

/// Holds a lock on a file against other processes, after waiting for them to release it. The file
/// is made when it is missing, and stays.
class FileLock {
 public:
  /// Calls `waiting` several times a second while another process holds the lock; passes on its
  /// exceptions. Throws Error with the path and the reason.
  explicit FileLock(const std::string& path, const std::function<void()>& waiting = {});

 private:
  OpenFile file_;
};

}  // namespace stepop
