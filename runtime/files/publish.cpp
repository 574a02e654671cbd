#include "runtime/files/publish.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/error.h"

namespace stepop {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw Error(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

void sync(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC);
  if (file < 0) fail("open", path);
  const bool is_synced = ::fsync(file) == 0 || errno == EINVAL;  // some file systems cannot sync
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (!is_synced) fail("save", path);
}

}  // namespace

void publish_file(const std::string& part, const std::string& path) {
  sync(part, O_RDONLY);
  if (std::rename(part.c_str(), path.c_str()) != 0) fail("rename " + part + " to", path);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  sync(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
}

}  // namespace stepop
