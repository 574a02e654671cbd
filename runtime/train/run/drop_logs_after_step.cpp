#include "runtime/train/run/drop_logs_after_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/log/log_files.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/value/value.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/run/run_files.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// A missing folder is empty; a folder that cannot be listed may not be.
void check_listed(const std::error_code& failed, const fs::path& folder) {
  if (!failed || failed == std::errc::no_such_file_or_directory) return;
  throw Error(fmt::format("cannot list {}: {}", folder.string(), failed.message()));
}

std::vector<fs::path> later_checkpoints(const RunDirectory& directory, int64_t step) {
  const CheckpointFolder folder(directory.checkpoints());
  std::vector<fs::path> files;
  for (const int64_t its_step : folder.steps()) {
    if (its_step > step) files.emplace_back(folder.path_of(its_step));
  }
  return files;
}

/// The pictures, sounds, texts and tables below `folder` that belong to a step after `step`.
std::vector<fs::path> later_log_files(const fs::path& folder, int64_t step) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const fs::path& path = entry->path();
    if (entry->is_symlink() || !entry->is_regular_file()) continue;
    const std::string kind = path.extension().string();
    if (!is_image_ending(kind) && kind != ".wav" && kind != ".txt" && kind != ".csv") continue;
    const auto parsed = parse_name_with_step(path.stem().string());
    if (parsed && parsed->step > step) files.push_back(path);
  }
  check_listed(failed, folder);
  std::sort(files.begin(), files.end());
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

/// Moves the records of steps after `step` that met NaN: the training writes them again.
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

/// Moves evaluations of later steps with an unfinished file, which no start resumes. Complete
/// evaluations stay as results.
int64_t move_unfinished_evaluations(const RunDirectory& directory, int64_t step,
                                    const fs::path& target) {
  int64_t count = 0;
  for (const auto& evaluation : find_evaluations(directory.root())) {
    if (evaluation.step <= step || directory.is_without_training(evaluation.start)) continue;
    std::error_code moved;  // moved together with other files of its step
    if (!evaluation.outputs.ends_with(".part") || !fs::exists(evaluation.folder, moved)) continue;
    const fs::path to = target / fs::path(evaluation.folder).lexically_relative(directory.root());
    make_folders(to.parent_path().string());
    rename_durably(evaluation.folder, to.string());
    ++count;
  }
  return count;
}

/// Moves later lines of the metrics; removes the target folder if it stays empty.
MetricsSplit split_later_metrics(const std::string& path, int64_t step, const fs::path& target) {
  make_folders(target.string());
  const MetricsSplit split = split_metrics(path, step, (target / "metrics.jsonl").string());
  std::error_code not_empty;
  fs::remove(target, not_empty);
  fs::remove(target.parent_path(), not_empty);
  return split;
}

}  // namespace

DroppedLogs drop_logs_after_step(const RunDirectory& directory, int64_t step,
                                 const std::string& time) {
  DroppedLogs moved;
  const fs::path train = fs::path(directory.root()) / "train";
  const std::string relative = "train/superseded/" + time;
  const fs::path target = fs::path(directory.root()) / relative;

  // The checkpoints are moved first, beginning with the last one: a start that is killed here
  // leaves no checkpoint whose metrics are missing.
  auto checkpoints = later_checkpoints(directory, step);
  std::reverse(checkpoints.begin(), checkpoints.end());
  move_files(checkpoints, train, target);

  // A step's logs come before its checkpoint, except that a start at step 0 logs step 0 again.
  const int64_t last_logged = step == 0 ? -1 : step;
  const MetricsSplit metrics = split_later_metrics(directory.metrics_file(), last_logged, target);
  moved.metrics = metrics.moved;
  if (metrics.last_line == MetricsSplit::LastLine::kDropped) {
    moved.repaired = fmt::format("{}: removed half a last line, which a killed process left",
                                 directory.metrics_file());
  } else if (metrics.broken > 0) {
    moved.repaired = fmt::format("{}: lines that are not metrics moved to {}: {}",
                                 directory.metrics_file(), relative, metrics.broken);
  }
  moved.non_finite = move_non_finite(step, train, target);
  std::vector<fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(train, failed)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || !is_folder_of_split(name)) continue;
    const auto more = later_log_files(entry.path(), last_logged);
    files.insert(files.end(), more.begin(), more.end());
  }
  check_listed(failed, train);
  move_files(files, train, target);
  moved.files =
      static_cast<int64_t>(files.size()) + move_unfinished_evaluations(directory, step, target);
  moved.checkpoints = static_cast<int64_t>(checkpoints.size());
  if (moved.files + moved.checkpoints + moved.metrics + moved.non_finite > 0) {
    moved.folder = relative;
  }
  return moved;
}

}  // namespace stepop
