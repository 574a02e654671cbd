#pragma once

#include <functional>
#include <string>

namespace stepop {

/// Holds a file locked against other processes, and waits until they let it go. The file is made
/// when it is missing, and stays.
class FileLock {
 public:
  /// Calls `waiting` several times a second while another process holds it; what that throws
  /// passes. Throws Error with the path and the reason.
  explicit FileLock(const std::string& path, const std::function<void()>& waiting = {});
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace stepop
