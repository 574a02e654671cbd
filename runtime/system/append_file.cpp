#include "runtime/system/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "runtime/system/atomic_file.h"

namespace stepop {
namespace {

bool has_half_last_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return file.seekg(-1, std::ios::end) && file.get() != '\n';
}

}  // namespace

AppendFile::AppendFile(std::string path)
    : path_(std::move(path)),
      file_(open_file(path_, O_WRONLY | O_CREAT | O_APPEND, "open " + path_)),
      ends_in_mid_line_(has_half_last_line(path_)) {}

void AppendFile::append(std::string_view lines) {
  if (lines.empty()) return;
  std::string ended;
  if (ends_in_mid_line_) lines = ended = "\n" + std::string(lines);
  const off_t before = size();
  size_t written = 0;
  const int reason = write_all(file_, lines, written);
  if (reason != 0) {
    if (written > 0 && !take_back(before, static_cast<off_t>(written))) ends_in_mid_line_ = true;
    fail_file("write " + path_, reason);
  }
  ends_in_mid_line_ = false;
}

void AppendFile::sync() {
  flush_file(file_, path_);
  if (name_is_flushed_) return;
  flush_folder_of(path_);
  name_is_flushed_ = true;
}

off_t AppendFile::size() const {
  struct stat status = {};
  return ::fstat(file_.number(), &status) == 0 ? status.st_size : -1;
}

bool AppendFile::take_back(off_t before, off_t written) {
  // What another process has appended meanwhile must stay.
  if (before < 0 || size() != before + written) return false;
  return file_calls().ftruncate(file_.number(), before) == 0;
}

}  // namespace stepop
