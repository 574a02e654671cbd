#include "runtime/files/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "runtime/error.h"

namespace stepop {
namespace {

/// Linux writes no more than this in one call.
constexpr size_t kLargestWrite = 0x7ffff000;

[[noreturn]] void fail(const std::string& operation, int reason) {
  throw Error(fmt::format("cannot {}: {}", operation, std::generic_category().message(reason)));
}

}  // namespace

const FileCalls& FileCalls::system() {
  static const FileCalls calls = {
      [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }, ::write,
      ::fsync, ::close, ::rename};
  return calls;
}

AtomicFile::AtomicFile(std::string path, const FileCalls& calls)
    : path_(std::move(path)), temporary_(path_ + std::string(kTemporarySuffix)), calls_(calls) {
  file_ = calls_.open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) fail("create " + temporary_, errno);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) calls_.close(file_);
  if (!is_committed_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = calls_.write(file_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write " + temporary_, errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void AtomicFile::commit() {
  if (calls_.fsync(file_) != 0) fail("flush " + temporary_, errno);
  close_file();
  if (calls_.rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail(fmt::format("rename {} to {}", temporary_, path_), errno);
  }
  is_committed_ = true;
  sync_folder();
}

void AtomicFile::close_file() {
  const int file = file_;
  file_ = -1;
  // An interrupted close has released the file on Linux.
  if (calls_.close(file) != 0 && errno != EINTR) fail("close " + temporary_, errno);
}

/// The new name is on the disk only when the folder that holds it is.
void AtomicFile::sync_folder() const {
  std::string folder = std::filesystem::path(path_).parent_path().string();
  if (folder.empty()) folder = ".";
  const int file = calls_.open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (file < 0) fail("open the folder " + folder, errno);
  const int reason = calls_.fsync(file) == 0 ? 0 : errno;
  calls_.close(file);
  // EINVAL: a file system that cannot flush folders, as some network file systems.
  if (reason != 0 && reason != EINVAL) fail("flush the folder " + folder, reason);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace stepop
