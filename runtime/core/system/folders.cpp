#include "runtime/core/system/folders.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runtime/core/base/error.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/system/file_lock.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// Whether an AtomicFile of a living process holds its lock on this file.
bool is_in_use(const std::string& path) {
  const OpenFile file(file_calls().open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0));
  if (!file) return true;  // in use, or unknown
  return try_lock(file) == Locked::kHeld;
}

bool is_leftover(const fs::directory_entry& entry) {
  if (!entry.path().native().ends_with(AtomicFile::kTemporarySuffix)) return false;
  std::error_code failed;
  const fs::file_type type = entry.symlink_status(failed).type();
  if (type == fs::file_type::symlink) return true;
  return type == fs::file_type::regular && !is_in_use(entry.path().string());
}

}  // namespace

void make_folders(const std::string& path) {
  std::string clean = path;
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  const auto make = [&] { return clean.empty() || file_calls().mkdir(clean.c_str(), 0777) == 0; };
  std::error_code failed;
  if (fs::is_directory(clean.empty() ? "." : clean, failed)) return;
  bool is_made = make();
  if (!is_made && errno == ENOENT) {
    make_folders(fs::path(clean).parent_path().string());
    is_made = make();
  }
  if (is_made) return flush_folder_of(clean);
  const int reason = errno;
  // Another process may have made the folder first.
  if (reason == EEXIST && fs::is_directory(clean, failed)) return;
  if (reason == EEXIST) {
    throw Error(fmt::format(
        "cannot make the folder {}: a {} is there", clean,
        fs::is_symlink(clean, failed) ? "link that leads to no folder" : "file of that name"));
  }
  fail_file("make the folder " + clean, reason);
}

std::vector<std::string> sweep_temporaries(const std::string& folder) {
  std::vector<std::string> leftovers;
  std::error_code failed;
  fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied,
                                           failed);
  for (; !failed && entries != fs::recursive_directory_iterator(); entries.increment(failed)) {
    if (is_leftover(*entries)) leftovers.push_back(entries->path().string());
  }
  std::erase_if(leftovers,
                [](const std::string& path) { return file_calls().unlink(path.c_str()) != 0; });
  for (auto& path : leftovers) path = fs::path(path).lexically_relative(folder).string();
  std::sort(leftovers.begin(), leftovers.end());
  return leftovers;
}

}  // namespace stepop
