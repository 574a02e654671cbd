#include "runtime/files/publish.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "runtime/error.h"

namespace stepop {
namespace {

/// Flushes what a path names to the disk. `what` is for the message: `the folder `.
void flush(const std::string& path, int flags, const std::string& what, const FileCalls& calls) {
  const int file = calls.open(path.c_str(), O_RDONLY | O_CLOEXEC | flags, 0);
  if (file < 0) fail_file("open " + what + path, errno);
  const int reason = calls.fsync(file) == 0 ? 0 : errno;
  calls.close(file);
  // EINVAL: a file system that cannot flush this, as some network file systems with folders.
  if (reason != 0 && reason != EINVAL) fail_file("flush " + what + path, reason);
}

}  // namespace

const FileCalls& FileCalls::system() {
  static const FileCalls calls = {
      [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }, ::write,
      ::fsync, ::close, ::rename};
  return calls;
}

void fail_file(const std::string& operation, int reason) {
  throw Error(fmt::format("cannot {}: {}", operation, std::generic_category().message(reason)));
}

void publish_file(const std::string& part, const std::string& path, const FileCalls& calls) {
  flush(part, 0, "", calls);
  rename_durably(part, path, calls);
}

void rename_durably(const std::string& part, const std::string& path, const FileCalls& calls) {
  if (calls.rename(part.c_str(), path.c_str()) != 0) {
    fail_file(fmt::format("rename {} to {}", part, path), errno);
  }
  // The new name is on the disk only when the folder that holds it is.
  const std::string folder = std::filesystem::path(path).parent_path().string();
  flush(folder.empty() ? "." : folder, O_DIRECTORY, "the folder ", calls);
}

}  // namespace stepop
