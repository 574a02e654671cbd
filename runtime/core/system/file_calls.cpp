#include "runtime/core/system/file_calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace stepop {
namespace {

/// The largest number of bytes that Linux writes in one call.
constexpr size_t kLargestWrite = 0x7ffff000;

std::atomic<FileCalls*>& calls_in_use() {
  // Never destroyed, for files that static objects close.
  static auto* system = new FileCalls;
  static std::atomic<FileCalls*> calls = system;
  return calls;
}

/// Repeats a call that a signal interrupted.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

int FileCalls::open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
ssize_t FileCalls::write(int file, const void* data, size_t size) {
  return ::write(file, data, size);
}
int FileCalls::fsync(int file) { return ::fsync(file); }
int FileCalls::ftruncate(int file, off_t size) { return ::ftruncate(file, size); }
int FileCalls::fallocate(int file, off_t offset, off_t size) {
  return ::fallocate(file, 0, offset, size);
}
int FileCalls::close(int file) { return ::close(file); }
int FileCalls::rename(const char* from, const char* to) { return ::rename(from, to); }
int FileCalls::unlink(const char* path) { return ::unlink(path); }
int FileCalls::symlink(const char* target, const char* path) { return ::symlink(target, path); }
int FileCalls::mkdir(const char* path, mode_t mode) { return ::mkdir(path, mode); }

FileCalls& file_calls() { return *calls_in_use().load(); }

FileCallsOverride::FileCallsOverride(FileCalls& calls) : before_(calls_in_use().exchange(&calls)) {}

FileCallsOverride::~FileCallsOverride() { calls_in_use() = before_; }

void fail_file(const std::string& operation, int reason) {
  const std::string text =
      fmt::format("cannot {}: {}", operation, std::generic_category().message(reason));
  constexpr std::array kReasonsOfDisks = {ENOSPC, EDQUOT, EFBIG, EROFS, EIO};
  const bool is_of_disk =
      std::find(kReasonsOfDisks.begin(), kReasonsOfDisks.end(), reason) != kReasonsOfDisks.end();
  if (is_of_disk) throw DiskError(text);
  throw Error(text);
}

OpenFile::~OpenFile() {
  // Closes a file that was read, or is given up: a failure would have no consequence, so no test
  // simulates one.
  if (number_ >= 0) ::close(number_);
}

int OpenFile::close() {
  if (number_ < 0) return 0;
  // On Linux, an interrupted close has released the file.
  const bool is_closed = file_calls().close(std::exchange(number_, -1)) == 0 || errno == EINTR;
  return is_closed ? 0 : errno;
}

OpenFile open_file(const std::string& path, int flags, const std::string& operation) {
  OpenFile file(
      uninterrupted([&] { return file_calls().open(path.c_str(), flags | O_CLOEXEC, 0666); }));
  if (file) return file;
  if ((flags & O_NOFOLLOW) != 0 && errno == ELOOP) {
    throw Error(fmt::format(
        "cannot {}: it is a symbolic link, which may lead anywhere; put a file in its place",
        operation));
  }
  fail_file(operation, errno);
}

OpenFile open_regular_file(const std::string& path, struct stat& status) {
  // Does not use file_calls(), which is for writes. Without O_NONBLOCK the call would wait for a
  // pipe.
  OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file || ::fstat(file.number(), &status) != 0) fail_file("read " + path, errno);
  if (S_ISDIR(status.st_mode)) fail_file("read " + path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw Error(fmt::format("cannot read {}: it is a pipe or a device, not a regular file", path));
  }
  return file;
}

int write_all(const OpenFile& file, std::string_view bytes, size_t& written) {
  written = 0;
  while (written < bytes.size()) {
    const size_t size = std::min(bytes.size() - written, kLargestWrite);
    const ssize_t count = uninterrupted(
        [&] { return file_calls().write(file.number(), bytes.data() + written, size); });
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;  // a file that takes no bytes and gives no reason
    written += static_cast<size_t>(count);
  }
  return 0;
}

void flush_file(const OpenFile& file, const std::string& what) {
  if (uninterrupted([&] { return file_calls().fsync(file.number()); }) == 0 || errno == EINVAL)
    return;
  fail_file("flush " + what, errno);
}

}  // namespace stepop
