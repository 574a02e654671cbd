#include "runtime/run/supersede.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/config/value.h"
#include "runtime/log/metrics_file.h"
#include "runtime/system/atomic_file.h"
#include "runtime/system/folders.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// The step in `loss_0000700.png` or `model-700.safetensors`; -1 for another name.
int64_t step_of(const fs::path& file) {
  const std::string stem = file.stem().string();
  const size_t sign = stem.find_last_of("_-");
  if (sign == std::string::npos) return -1;
  const size_t digit = stem.find_first_not_of('0', sign + 1);
  if (digit == std::string::npos) return sign + 1 < stem.size() ? 0 : -1;
  return list_index(std::string_view(stem).substr(digit));
}

/// Nothing to move is no error, but what cannot be listed may hold something.
void check_listed(const std::error_code& failed, const fs::path& folder) {
  if (!failed || failed == std::errc::no_such_file_or_directory) return;
  throw Error(fmt::format("cannot list {}: {}", folder.string(), failed.message()));
}

/// Files below `folder` with this extension that belong to a step after `step`, in their order.
std::vector<fs::path> later_files(const std::string& folder, const char* extension, int64_t step) {
  std::vector<std::pair<int64_t, fs::path>> found;
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    // A link, such as `latest`, is not what it points at.
    if (entry->is_symlink() || !entry->is_regular_file()) continue;
    if (entry->path().extension() != extension) continue;
    const int64_t its_step = step_of(entry->path());
    if (its_step > step) found.emplace_back(its_step, entry->path());
  }
  check_listed(failed, folder);
  std::sort(found.begin(), found.end());
  std::vector<fs::path> files;
  for (auto& [its_step, path] : found) files.push_back(std::move(path));
  return files;
}

/// Moves files and folders below `train` to the same places below `target`.
void move_files(const std::vector<fs::path>& files, const fs::path& train, const fs::path& target) {
  for (const auto& file : files) {
    const fs::path to = target / file.lexically_relative(train);
    make_folders(to.parent_path().string());
    rename_durably(file.string(), to.string());
  }
}

/// Moves what was saved of steps after `step` that met NaN: they are made again.
int64_t move_non_finite(int64_t step, const fs::path& train, const fs::path& target) {
  std::error_code failed;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(train / "non_finite", failed)) {
    if (list_index(entry.path().filename().string()) > step) folders.push_back(entry.path());
  }
  check_listed(failed, train / "non_finite");
  move_files(folders, train, target);
  return static_cast<int64_t>(folders.size());
}

/// Moves later lines of the metrics; a folder in which nothing came to lie goes again.
MetricsSplit split_later_metrics(const std::string& path, int64_t step, const fs::path& target) {
  make_folders(target.string());
  const MetricsSplit split = split_metrics(path, step, (target / "metrics.jsonl").string());
  std::error_code not_empty;
  fs::remove(target, not_empty);
  fs::remove(target.parent_path(), not_empty);
  return split;
}

}  // namespace

Superseded supersede(const RunDirectory& directory, int64_t step, const std::string& time) {
  Superseded moved;
  const fs::path train = fs::path(directory.root()) / "train";
  const std::string relative = "train/superseded/" + time;
  const fs::path target = fs::path(directory.root()) / relative;

  // The checkpoints go first, the last one before the others: a start that is killed here leaves
  // nothing from which a training could go on without the metrics that belong to it.
  auto checkpoints = later_files(directory.checkpoints(), ".safetensors", step);
  std::reverse(checkpoints.begin(), checkpoints.end());
  move_files(checkpoints, train, target);

  // What a step logs comes before its checkpoint; but a start at step 0 logs it again.
  const int64_t last_logged = step == 0 ? -1 : step;
  const MetricsSplit metrics = split_later_metrics(directory.metrics_file(), last_logged, target);
  moved.metrics = metrics.moved;
  if (metrics.last_line == MetricsSplit::LastLine::kDropped) {
    moved.mended = fmt::format("{}: half a last line, which a killed process left, is gone",
                               directory.metrics_file());
  } else if (metrics.broken > 0) {
    moved.mended = fmt::format("{}: lines that are no metrics moved to {}: {}",
                               directory.metrics_file(), relative, metrics.broken);
  }
  moved.non_finite = move_non_finite(step, train, target);
  std::vector<fs::path> images;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(train, failed)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name == "superseded" || name == "checkpoints" ||
        name == "non_finite") {
      continue;
    }
    const auto more = later_files(entry.path().string(), ".png", last_logged);
    images.insert(images.end(), more.begin(), more.end());
  }
  check_listed(failed, train);
  move_files(images, train, target);
  moved.images = static_cast<int64_t>(images.size());
  moved.checkpoints = static_cast<int64_t>(checkpoints.size());
  if (moved.images + moved.checkpoints + moved.metrics + moved.non_finite > 0)
    moved.folder = relative;
  return moved;
}

}  // namespace stepop
