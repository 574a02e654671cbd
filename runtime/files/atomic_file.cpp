#include "runtime/files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace stepop {
namespace {

/// Linux writes no more than this in one call.
constexpr size_t kLargestWrite = 0x7ffff000;

}  // namespace

AtomicFile::AtomicFile(std::string path, const FileCalls& calls)
    : path_(std::move(path)), temporary_(path_ + std::string(kTemporarySuffix)), calls_(calls) {
  file_ = calls_.open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) fail_file("create " + temporary_, errno);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) calls_.close(file_);
  ::unlink(temporary_.c_str());  // not there any more when it was committed
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = calls_.write(file_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_file("write " + temporary_, errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void AtomicFile::commit() {
  if (calls_.fsync(file_) != 0) fail_file("flush " + temporary_, errno);
  close_file();
  rename_durably(temporary_, path_, calls_);
}

void AtomicFile::close_file() {
  const int file = file_;
  file_ = -1;
  // An interrupted close has released the file on Linux.
  if (calls_.close(file) != 0 && errno != EINTR) fail_file("close " + temporary_, errno);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace stepop
