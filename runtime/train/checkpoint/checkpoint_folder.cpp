#include "runtime/train/checkpoint/checkpoint_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/safetensors_reader.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/value/value.h"
#include "runtime/train/checkpoint/checkpoint.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLatest = "latest.safetensors";
constexpr const char* kBest = "best.safetensors";

/// A checkpoint may be removed while others are read; the folder is then listed again, at most this
/// often.
constexpr int kMostListings = 10;

}  // namespace

std::string CheckpointFolder::path_of(int64_t step) const {
  return path_ + "/" + checkpoint_name(step);
}

std::vector<int64_t> CheckpointFolder::steps() const { return checkpoint_steps(path_); }

std::optional<int64_t> CheckpointFolder::latest() const { return linked(kLatest); }
std::optional<int64_t> CheckpointFolder::best() const { return linked(kBest); }

std::optional<int64_t> CheckpointFolder::linked(const char* link) const {
  std::error_code failed;
  const fs::path target = fs::read_symlink(path_ + "/" + link, failed);
  if (failed || target.has_parent_path()) return std::nullopt;
  const auto step = checkpoint_step(target.string());
  return step && fs::exists(path_of(*step), failed) ? step : std::nullopt;
}

std::optional<std::string> CheckpointFolder::newest_whole(std::vector<std::string>& warnings,
                                                          const Problem& problem_of) const {
  for (int listing = 0; listing < kMostListings; ++listing) {
    std::vector<int64_t> newest_first = steps();
    std::reverse(newest_first.begin(), newest_first.end());
    std::vector<std::string> damages;
    bool one_is_gone = false;
    for (const int64_t step : newest_first) {
      std::string path = path_of(step);
      std::optional<std::string> reason;
      try {
        reason = problem_of ? problem_of(path) : verify_checkpoint(path);
      } catch (const ReadError& error) {
        throw Error(
            fmt::format("{}; it may be whole, so no older one is used. To resume from another "
                        "one, give its step: -c STEP",
                        error.what()));
      }
      if (!reason) {
        for (const auto& damage : damages) {
          warnings.push_back(
              fmt::format("{}/{}; using {} instead", path_, damage, checkpoint_name(step)));
        }
        return path;
      }
      std::error_code failed;
      if (!fs::exists(path, failed) && !failed) {
        one_is_gone = true;  // another process, a training with a newer checkpoint, removed it
        continue;
      }
      damages.push_back(fmt::format("{}: damaged: {}", checkpoint_name(step), *reason));
    }
    if (one_is_gone) continue;
    if (damages.empty()) return std::nullopt;
    throw Error(
        fmt::format("{}: every checkpoint is damaged; to start again at step 0, move them to "
                    "another folder:\n  {}",
                    path_, fmt::join(damages, "\n  ")));
  }
  throw Error(fmt::format("{}: its checkpoints are removed while they are read", path_));
}

std::string CheckpointFolder::known_steps() const {
  const auto all = steps();
  return all.empty() ? "there are none"
                     : fmt::format("there are checkpoints of the steps {}", fmt::join(all, ", "));
}

std::optional<std::string> CheckpointFolder::find(const std::string& text) const {
  if (text == "latest") {
    const auto all = steps();
    if (all.empty()) throw UsageError(fmt::format("-c latest: {}: has no checkpoints", path_));
    return path_of(all.back());
  }
  if (text == "best") {
    const auto step = best();
    if (step) return path_of(*step);
    throw UsageError(
        fmt::format("-c best: {}: no checkpoint is marked as the best, which needs "
                    "checkpoints/metric in the config and an evaluation; {}",
                    path_, known_steps()));
  }
  const int64_t step = list_index(text);
  if (step < 0) return std::nullopt;
  const std::string path = path_of(step);
  std::error_code failed;
  if (fs::exists(path, failed)) return path;
  throw UsageError(fmt::format("-c: {}: no such checkpoint; {}", path, known_steps()));
}

void CheckpointFolder::link(const char* link, int64_t step) const {
  if (linked(link) != step) link_into_place(checkpoint_name(step), path_ + "/" + link);
}

std::vector<int64_t> CheckpointFolder::update_links_and_sweep(
    const MetricByStep& values, const Retention& retention,
    const std::set<int64_t>& unjudged) const {
  const std::vector<int64_t> all = steps();
  if (all.empty()) return {};
  link(kLatest, all.back());
  const std::vector<int64_t> best_ones = best_steps(all, values, retention);
  if (!best_ones.empty()) link(kBest, best_ones.front());
  std::vector<int64_t> removed =
      steps_to_remove(all, values, retention, latest(), best(), unjudged);
  for (const int64_t step : removed) {
    const std::string path = path_of(step);
    if (file_calls().unlink(path.c_str()) != 0 && errno != ENOENT)
      fail_file("remove " + path, errno);
  }
  return removed;
}

}  // namespace stepop
