#include "runtime/system/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "runtime/system/file_calls.h"
#include "runtime/system/publish.h"

namespace stepop {

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + std::string(kTemporarySuffix)) {
  file_ = open_file(temporary_, O_WRONLY | O_CREAT | O_TRUNC, "create " + temporary_);
  ::flock(file_, LOCK_EX | LOCK_NB);  // for sweep_temporaries; some network file systems have none
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) file_calls().close(file_);
  if (!is_committed_) file_calls().unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  size_t written = 0;
  const int reason = write_all(file_, bytes, written);
  if (reason != 0) fail_file("write " + temporary_, reason);
}

void AtomicFile::commit() {
  flush_file(file_, temporary_);
  close_file();
  rename_durably(temporary_, path_);
  is_committed_ = true;
}

void AtomicFile::close_file() {
  const int file = file_;
  file_ = -1;
  // An interrupted close has released the file on Linux.
  if (file_calls().close(file) != 0 && errno != EINTR) fail_file("close " + temporary_, errno);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace stepop
