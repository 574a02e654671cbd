#include "runtime/files/reserve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "runtime/files/file_calls.h"

namespace stepop {

void reserve_space(const std::string& path) {
  const int file = open_file(path, O_WRONLY, "open " + path);
  struct stat status = {};
  int reason = 0;
  if (::fstat(file, &status) == 0 && status.st_size > 0) {
    do {
      reason = file_calls().fallocate(file, status.st_size) == 0 ? 0 : errno;
    } while (reason == EINTR);
  }
  file_calls().close(file);
  if (reason != ENOSPC && reason != EDQUOT && reason != EFBIG && reason != EIO) return;
  fail_file(
      fmt::format("reserve the {:.1f} MB of {}", static_cast<double>(status.st_size) / 1e6, path),
      reason);
}

}  // namespace stepop
