#include "runtime/run/run_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "runtime/error.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/file_calls.h"
#include "runtime/files/folders.h"
#include "runtime/files/publish.h"
#include "runtime/log/number_text.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr size_t kTimeLength = 19;  // 2026-11-21T10-00-00

}  // namespace

std::string time_name() { return local_time("%Y-%m-%dT%H-%M-%S"); }

RunDirectory RunDirectory::create(const std::string& parent, const std::string& time,
                                  const std::string& name, const std::string& config_name,
                                  const std::string& config,
                                  const std::function<void(const RunDirectory&)>& fill) {
  // Made under another name, so that a run that is there has its config, whatever happens.
  make_folders(parent);
  RunDirectory directory(fmt::format("{}/.{}_{}.{}.tmp", parent, time, name, getpid()));
  const std::string temporary = directory.root_;
  try {
    make_folders(directory.configs());
    make_folders(directory.checkpoints());
    if (!config_name.empty()) {
      write_file_atomically(directory.configs() + "/" + config_name, config);
    }
    if (fill) fill(directory);
    directory.root_ = fmt::format("{}/{}_{}", parent, time, name);
    for (int count = 2; file_calls().rename(temporary.c_str(), directory.root_.c_str()) != 0;
         ++count) {
      if (errno != ENOTEMPTY && errno != EEXIST) fail_file("make " + directory.root_, errno);
      directory.root_ = fmt::format("{}/{}_{}-{}", parent, time, name, count);
    }
    flush_folder_of(directory.root_);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
  return directory;
}

RunDirectory RunDirectory::at(const std::string& root) {
  std::string clean = fs::path(root).lexically_normal().string();
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  return RunDirectory(clean);
}

RunDirectory RunDirectory::open(const std::string& root) {
  RunDirectory directory = at(root);
  if (!fs::is_directory(directory.root())) {
    throw UsageError(
        fmt::format("-p: {}: no such folder; give the folder of a run, "
                    "logs/<time>_<name>",
                    root));
  }
  if (!fs::is_directory(directory.configs())) {
    throw UsageError(fmt::format("-p: {}: not the folder of a run: it has no configs/", root));
  }
  return directory;
}

std::string RunDirectory::folder_name() const {
  return fs::absolute(root_).lexically_normal().filename().string();
}

std::string RunDirectory::run_name() const {
  const std::string name = folder_name();
  return name.size() > kTimeLength + 1 && name[kTimeLength] == '_' ? name.substr(kTimeLength + 1)
                                                                   : name;
}

std::string RunDirectory::evaluation(const std::string& time, int64_t step) const {
  return fmt::format("eval/{}_{}/{}", time, run_name(), step);
}

std::string RunDirectory::last_config() const {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(configs(), failed)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().filename().string());
  }
  // "train_..." sorts behind "eval_...", and times sort as text.
  if (names.empty()) {
    throw UsageError(
        fmt::format("-p: {}: the run has no config in configs/; give one with -b", root_));
  }
  return configs() + "/" + *std::max_element(names.begin(), names.end());
}

}  // namespace stepop
