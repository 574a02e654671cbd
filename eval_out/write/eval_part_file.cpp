#include "eval_out/write/eval_part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/error.h"
#include "runtime/system/file_calls.h"

namespace stepop {

EvalPartFile::~EvalPartFile() {
  if (is_worthless) file_calls().unlink(path.c_str());
}

bool EvalPartFile::can_open(const std::string& part) {
  const int file = ::open(part.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return false;
  if (file < 0) fail_file("go on with " + part, errno);
  ::close(file);
  return true;
}

void EvalPartFile::make_way() const {
  if (const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC); file >= 0) {
    // Readers share HDF5's lock, a writer has it alone.
    const bool is_written = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(file);
    if (is_written) throw Error("cannot create " + path + ": another process is writing it");
  }
  if (file_calls().unlink(path.c_str()) == 0 || errno == ENOENT) return;
  fail_file("create " + path, errno);
}

}  // namespace stepop
