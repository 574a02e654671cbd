#include "runtime/core/system/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

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

/// Whether it is a pipe with a name: one without, such as of `<(command)`, has had its writer.
bool is_fifo(const OpenFile& file) {
  struct stat status = {};
  struct statfs system = {};
  return ::fstat(file.number(), &status) == 0 && S_ISFIFO(status.st_mode) &&
         ::fstatfs(file.number(), &system) == 0 && system.f_type != PIPEFS_MAGIC;
}

/// Reads bytes of a file that is opened without waiting, and waits for those of a pipe, but not
/// without end for somebody who opens a FIFO to write. A signal ends the wait.
class PatientReader {
 public:
  PatientReader(const OpenFile& file, const std::string& path)
      : file_(file), path_(path), waits_for_writer_(is_fifo(file)) {}

  /// How many bytes were read; 0 at the end.
  size_t read(char* bytes, size_t most) {
    while (true) {
      const ssize_t count = ::read(file_.number(), bytes, most);
      if (count > 0 || (count == 0 && !waits_for_writer_)) {
        waits_for_writer_ = false;
        return static_cast<size_t>(count);
      }
      if (count == 0) {
        wait_for_writer();
      } else if (errno == EAGAIN) {
        waits_for_writer_ = false;
        pollfd wanted = {.fd = file_.number(), .events = POLLIN, .revents = 0};
        if (::poll(&wanted, 1, -1) < 0) fail_file("read " + path_, errno);
      } else if (errno != EINTR) {
        fail_file("read " + path_, errno);
      }
    }
  }

 private:
  void wait_for_writer() const {
    if (std::chrono::steady_clock::now() > until_) {
      throw Error(fmt::format("cannot read {}: it is a FIFO, and no program writes to it", path_));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  const OpenFile& file_;
  const std::string& path_;
  bool waits_for_writer_;
  std::chrono::steady_clock::time_point until_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(3);
};

}  // namespace

std::string read_file(const std::string& path, int64_t most_bytes) {
  // Does not use file_calls(), which is for writes.
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) fail_file("read " + path, errno);
  PatientReader reader(file, path);
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
    const size_t count = reader.read(bytes.data() + size, bytes.size() - size);
    if (count == 0) break;
    size += count;
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
