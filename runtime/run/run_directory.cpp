#include "runtime/run/run_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "runtime/error.h"
#include "runtime/log/number_text.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr size_t kTimeLength = 19;  // 2026-11-21T10-00-00

}  // namespace

std::string time_name() { return local_time("%Y-%m-%dT%H-%M-%S"); }

RunDirectory RunDirectory::create(const std::string& parent, const std::string& time,
                                  const std::string& name) {
  std::error_code failed;
  fs::create_directories(parent, failed);
  if (failed) {
    throw Error(
        fmt::format("{}: cannot make the folder of the runs: {}", parent, failed.message()));
  }
  std::string root = parent + "/" + time + "_" + name;
  for (int count = 2; !fs::create_directory(root, failed); ++count) {
    if (failed) {
      throw Error(fmt::format("{}: cannot make the run's folder: {}", root, failed.message()));
    }
    root = fmt::format("{}/{}_{}-{}", parent, time, name, count);
  }
  RunDirectory directory(root);
  for (const auto& folder : {directory.configs(), directory.checkpoints()}) {
    fs::create_directories(folder, failed);
    if (failed) {
      const std::string reason = failed.message();
      fs::remove_all(root, failed);
      throw Error(fmt::format("{}: cannot make this folder: {}", folder, reason));
    }
  }
  return directory;
}

RunDirectory RunDirectory::open(const std::string& root) {
  std::string clean = fs::path(root).lexically_normal().string();
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  if (!fs::is_directory(clean)) {
    throw UsageError(
        fmt::format("-p: {}: no such folder; give the folder of a run, "
                    "logs/<time>_<name>",
                    root));
  }
  RunDirectory directory(clean);
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
