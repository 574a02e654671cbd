#include "runtime/core/system/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {
namespace {

constexpr int64_t kFirstRoom = 1 << 16;

/// 0 for a file whose size is unknown before it is read.
int64_t expected_size(const OpenFile& file) {
  struct stat status = {};
  return ::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

}  // namespace

std::string read_file(const std::string& path, int64_t most_bytes) {
  // Does not use file_calls(), which is for writes.
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail_file("read " + path, errno);
  const auto check_size = [&](int64_t size) {
    if (size <= most_bytes) return;
    throw Error(
        fmt::format("cannot read {}: it has more than {}, the most that is read of such a "
                    "file",
                    path, size_text(static_cast<double>(most_bytes))));
  };
  const int64_t expected = expected_size(file);
  check_size(expected);
  std::string bytes;
  size_t size = 0;
  while (true) {
    // One extra byte of room beyond the expected size finds the end without another read.
    if (size == bytes.size()) {
      bytes.resize(size == 0 ? static_cast<size_t>(std::max(kFirstRoom, expected + 1)) : 2 * size);
    }
    const ssize_t count = ::read(file.number(), bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_file("read " + path, errno);
    if (count == 0) break;
    size += static_cast<size_t>(count);
    check_size(static_cast<int64_t>(size));
  }
  bytes.resize(size);
  return bytes;
}

std::optional<std::string> try_read_file(const std::string& path, int64_t most_bytes) {
  try {
    return read_file(path, most_bytes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace stepop
