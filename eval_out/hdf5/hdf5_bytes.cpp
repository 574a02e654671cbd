#include "eval_out/hdf5/hdf5_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "runtime/system/file_calls.h"

namespace stepop {

void zero_bytes(const std::string& path, int64_t begin, int64_t count) {
  OpenFile file = open_file(path, O_WRONLY, "open " + path);
  const std::string zeros(size_t{1} << 16, '\0');
  int reason = ::lseek(file.number(), begin, SEEK_SET) < 0 ? errno : 0;
  for (int64_t rest = count; rest > 0 && reason == 0; rest -= static_cast<int64_t>(zeros.size())) {
    size_t written = 0;
    reason = write_all(file, std::string_view(zeros).substr(0, static_cast<size_t>(rest)), written);
  }
  const int closed = file.close();
  if (reason == 0) reason = closed;
  if (reason != 0) fail_file("write " + path, reason);
}

}  // namespace stepop
