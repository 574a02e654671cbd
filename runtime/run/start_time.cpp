#include "runtime/run/start_time.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runtime/system/atomic_file.h"
#include "runtime/system/file_calls.h"
#include "runtime/system/folders.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

bool is_taken(const RunDirectory& directory, const std::string& time) {
  const std::string& root = directory.root();
  return fs::exists(directory.config_file("train", time)) ||
         fs::exists(directory.config_file("eval", time)) ||
         fs::exists(root + "/" + directory.evaluations(time)) ||
         fs::exists(root + "/train/superseded/" + time);
}

/// Only one process can make a folder.
bool takes_folder(const std::string& path) {
  make_folders(fs::path(path).parent_path().string());
  if (file_calls().mkdir(path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) fail_file("make the folder " + path, errno);
  return false;
}

}  // namespace

std::string take_time(const RunDirectory& directory, const std::string& mode,
                      const std::string& config) {
  for (int64_t later = 0;; ++later) {
    const std::string time = time_name(later);
    if (is_taken(directory, time)) continue;
    const std::string evaluations = directory.root() + "/" + directory.evaluations(time);
    const std::string own = directory.config_file(mode, time);
    // A training shows by its config that it took the time, an evaluation by its folder. Each shows
    // it before it looks for the other's.
    if (mode == "train") {
      write_file_atomically(own, config);
      if (!fs::exists(evaluations)) return time;
      file_calls().unlink(own.c_str());
    } else if (takes_folder(evaluations)) {
      if (!fs::exists(directory.config_file("train", time))) {
        write_file_atomically(own, config);
        return time;
      }
      ::rmdir(evaluations.c_str());
    }
  }
}

}  // namespace stepop
