#include "runtime/system/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "runtime/system/file_calls.h"

namespace stepop {

FileLock::FileLock(const std::string& path, const std::function<void()>& waiting)
    : file_(open_file(path, O_RDWR | O_CREAT, "make " + path)) {
  try {
    while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) fail_file("lock " + path, errno);
      if (waiting) waiting();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  } catch (...) {
    ::close(file_);
    throw;
  }
}

FileLock::~FileLock() { ::close(file_); }

}  // namespace stepop
