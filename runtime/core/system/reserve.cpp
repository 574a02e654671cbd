#include "runtime/core/system/reserve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "runtime/core/base/number_text.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {
namespace {

int64_t length_of(const OpenFile& file) {
  struct stat status = {};
  return ::fstat(file.number(), &status) == 0 ? status.st_size : 0;
}

int allocate(const OpenFile& file, int64_t begin, int64_t end) {
  while (file_calls().fallocate(file.number(), begin, end - begin) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// Replaces `fallocate` on a file system without it.
int append_zeros(const OpenFile& file, int64_t count) {
  const std::string zeros(static_cast<size_t>(std::clamp<int64_t>(count, 0, 1 << 20)), '\0');
  while (count > 0) {
    const auto part = std::min(zeros.size(), static_cast<size_t>(count));
    size_t written = 0;
    const int reason = write_all(file, std::string_view(zeros).substr(0, part), written);
    if (reason != 0) return reason;
    count -= static_cast<int64_t>(part);
  }
  return 0;
}

}  // namespace

void reserve_space(const std::string& path, int64_t begin, int64_t end) {
  if (begin >= end) return;
  const OpenFile file = open_file(path, O_WRONLY | O_APPEND, "open " + path);
  const int64_t old_size = length_of(file);
  int reason = allocate(file, begin, end);
  if (reason == EOPNOTSUPP || reason == ENOSYS || reason == EINVAL) {
    reason = append_zeros(file, end - old_size);
  }
  if (reason == 0) return;
  file_calls().ftruncate(file.number(), old_size);
  fail_file(fmt::format("reserve {} in {}", size_text(static_cast<double>(end - begin)), path),
            reason);
}

void release_space(const std::string& path, int64_t end) {
  const OpenFile file = open_file(path, O_WRONLY, "open " + path);
  if (length_of(file) <= end) return;
  while (file_calls().ftruncate(file.number(), end) != 0) {
    if (errno != EINTR) fail_file(fmt::format("cut {} to {} bytes", path, end), errno);
  }
}

}  // namespace stepop
