#include "runtime/core/system/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/read_file.h"

namespace stepop {
namespace {

constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW;

bool has_half_last_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return file.seekg(-1, std::ios::end) && file.get() != '\n';
}

}  // namespace

AppendFile::AppendFile(std::string path)
    : path_(std::move(path)),
      file_(open_file(path_, kFlags, "open " + path_)),
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

std::string AppendFile::mend() {
  struct stat ours = {};
  struct stat named = {};
  if (::fstat(file_.number(), &ours) != 0) return "";
  const bool is_gone = ::lstat(path_.c_str(), &named) != 0 && errno == ENOENT;
  const bool is_ours = named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
  if (!is_gone && (is_ours || named.st_ino == 0)) return "";
  // The content of a removed file is still available through the open file.
  if (is_gone)
    write_file_atomically(path_, read_file(fmt::format("/proc/self/fd/{}", file_.number())));
  file_ = open_file(path_, kFlags, "open " + path_);
  ends_in_mid_line_ = has_half_last_line(path_);
  name_is_flushed_ = false;
  return is_gone ? fmt::format(
                       "{} was removed while it was being written: it has been written again, with "
                       "all its lines",
                       path_)
                 : fmt::format(
                       "{} was replaced by another file while it was being written: new lines are "
                       "appended to that file",
                       path_);
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
  // Lines that another process has appended meanwhile must stay.
  if (before < 0 || size() != before + written) return false;
  return file_calls().ftruncate(file_.number(), before) == 0;
}

}  // namespace stepop
