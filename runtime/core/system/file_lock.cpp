#include "runtime/core/system/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace stepop {

Locked try_lock(const OpenFile& file, bool is_shared) {
  while (::flock(file.number(), (is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Locked::kHeld : Locked::kUnknown;
  }
  return Locked::kYes;
}

FileLock::FileLock(const std::string& path, const std::function<void()>& waiting)
    : file_(open_file(path, O_RDWR | O_CREAT, "make " + path)) {
  while (true) {
    const Locked result = try_lock(file_);
    if (result == Locked::kYes) return;
    if (result == Locked::kUnknown) fail_file("lock " + path, errno);
    if (waiting) waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace stepop
