#include "runtime/system/publish.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

#include "runtime/system/atomic_file.h"
#include "runtime/system/file_calls.h"

namespace stepop {
namespace {

/// Flushes what a path names to the disk. `what` is for the message: `the folder `.
void flush(const std::string& path, int flags, const std::string& what) {
  const int file = open_file(path, O_RDONLY | flags, "open " + what + path);
  try {
    flush_file(file, what + path);
  } catch (...) {
    file_calls().close(file);
    throw;
  }
  file_calls().close(file);
}

}  // namespace

void publish_file(const std::string& part, const std::string& path) {
  flush(part, 0, "");
  rename_durably(part, path);
}

void rename_durably(const std::string& part, const std::string& path) {
  if (file_calls().rename(part.c_str(), path.c_str()) != 0) {
    fail_file(fmt::format("rename {} to {}", part, path), errno);
  }
  flush_folder_of(path);
}

void publish_symlink(const std::string& target, const std::string& path) {
  FileCalls& calls = file_calls();
  const std::string temporary = path + std::string(AtomicFile::kTemporarySuffix);
  const auto link = [&] { return calls.symlink(target.c_str(), temporary.c_str()) == 0; };
  if (!link()) {
    // A killed process may have left one behind.
    const bool is_linked = errno == EEXIST && calls.unlink(temporary.c_str()) == 0 && link();
    if (!is_linked) fail_file(fmt::format("create the link {} to {}", temporary, target), errno);
  }
  try {
    rename_durably(temporary, path);
  } catch (...) {
    calls.unlink(temporary.c_str());  // not there any more when it was renamed
    throw;
  }
}

void flush_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  flush(folder.empty() ? "." : folder, O_DIRECTORY, "the folder ");
}

}  // namespace stepop
