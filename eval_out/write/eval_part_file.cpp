#include "eval_out/write/eval_part_file.h"

#include <fcntl.h>

#include <cerrno>

#include "runtime/base/error.h"
#include "runtime/system/file_lock.h"

namespace stepop {

EvalPartFile::~EvalPartFile() {
  if (is_worthless) file_calls().unlink(path.c_str());
}

bool EvalPartFile::can_open(const std::string& part) {
  const OpenFile file(::open(part.c_str(), O_RDWR | O_CLOEXEC));
  if (!file && errno != ENOENT) fail_file("go on with " + part, errno);
  return static_cast<bool>(file);
}

void EvalPartFile::make_way() const {
  if (const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); file) {
    // Readers share HDF5's lock, a writer has it alone.
    const bool is_written = try_lock(file, /*is_shared=*/true) == Locked::kHeld;
    if (is_written) throw Error("cannot create " + path + ": another process is writing it");
  }
  if (file_calls().unlink(path.c_str()) == 0 || errno == ENOENT) return;
  fail_file("create " + path, errno);
}

}  // namespace stepop
