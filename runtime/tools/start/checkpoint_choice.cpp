#include "runtime/tools/start/checkpoint_choice.h"

#include <fmt/format.h>

#include <filesystem>
#include <thread>
#include <utility>

#include "runtime/core/log/metrics_file.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

std::optional<ChosenCheckpoint> choose_newest(const CheckpointFolder& folder, Console& console) {
  ChosenCheckpoint chosen;
  std::vector<std::string> warnings;
  auto path = folder.newest_whole(warnings, [&](const std::string& candidate) {
    return try_load_checkpoint(candidate, chosen.checkpoint);
  });
  for (const auto& warning : warnings) console.warn(warning);
  if (!path) return std::nullopt;
  chosen.path = std::move(*path);
  return chosen;
}

/// The checkpoint that `-c` names within a run; nothing for a text that is no such name.
std::optional<ChosenCheckpoint> choose_named(const CheckpointFolder& folder,
                                             const std::string& wanted) {
  // Each further round finds another checkpoint: `find` throws for a removed step.
  while (auto path = folder.find(wanted)) {
    ChosenCheckpoint chosen{std::move(*path), {}};
    const auto damage = try_load_checkpoint(chosen.path, chosen.checkpoint);
    if (!damage) return chosen;
    std::error_code failed;
    if (!fs::exists(chosen.path, failed) && !failed) continue;
    throw Error(
        fmt::format("-c {}: {}: damaged: {}; without -c the newest one that is whole is taken",
                    wanted, chosen.path, *damage));
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChosenCheckpoint> choose_checkpoint(const Arguments& arguments,
                                                  const RunSource& source, Console& console) {
  std::optional<CheckpointFolder> folder;
  if (source.project) folder.emplace(source.project->checkpoints());
  if (!arguments.checkpoint) return folder ? choose_newest(*folder, console) : std::nullopt;
  const std::string& wanted = *arguments.checkpoint;
  if (folder) {
    if (auto chosen = choose_named(*folder, wanted)) return chosen;
  }
  if (fs::exists(wanted)) return ChosenCheckpoint{wanted, load_checkpoint(wanted)};
  throw UsageError(fmt::format(
      "-c: {}: no such file{}", wanted,
      folder ? ", nor a checkpoint of the run: those are named by their step, latest, best" : ""));
}

namespace {

constexpr std::chrono::milliseconds kLookEvery{500};

}  // namespace

CheckpointQueue::CheckpointQueue(const RunDirectory& run, const CheckpointFilter& filter,
                                 bool waits, Deadline deadline,
                                 std::function<void(int64_t step)> passed)
    : folder_(run.checkpoints()),
      metrics_(run.metrics_file()),
      filter_(filter),
      waits_(waits),
      deadline_(deadline),
      passed_(std::move(passed)) {}

/// Also records the checkpoint as seen.
bool CheckpointQueue::is_new(int64_t step) {
  std::error_code failed;
  const auto written = std::filesystem::last_write_time(folder_.path_of(step), failed);
  if (failed) return false;
  const auto [seen, is_first] = seen_.try_emplace(step, written);
  return is_first || std::exchange(seen->second, written) != written;
}

void CheckpointQueue::pass_over(int64_t step) {
  for (const int64_t there : folder_.steps()) {
    if (there <= step) is_new(there);
  }
}

std::optional<bool> CheckpointQueue::takes(int64_t step) const {
  if (!filter_.takes(step, fs::path(folder_.path_of(step)).stem().string())) return false;
  if (!filter_.has_conditions()) return true;
  return filter_.holds([&](const std::string& metric) {
    std::optional<double> found;
    if (!fs::exists(metrics_)) return found;
    scan_metric(metrics_, metric, [&](int64_t at, double value) {
      if (at == step) found = value;
    });
    return found;
  });
}

/// Returns the next existing checkpoint.
std::optional<ChosenCheckpoint> CheckpointQueue::look(Console& console) {
  const std::vector<int64_t> steps = folder_.steps();
  for (const int64_t step : steps) {
    throw_if_signal_arrived();
    if (!is_new(step)) continue;
    const std::optional<bool> is_taken = takes(step);
    // Once the training has moved to another step, it logs nothing more for this step.
    if (!is_taken && waits_ && step == steps.back()) {
      seen_.erase(step);
      return std::nullopt;
    }
    if (!is_taken.value_or(false)) {
      if (passed_) passed_(step);
      continue;
    }
    ChosenCheckpoint chosen{folder_.path_of(step), {}};
    const auto damage = try_load_checkpoint(chosen.path, chosen.checkpoint);
    if (!damage) return chosen;
    std::error_code failed;
    const bool is_there = fs::exists(chosen.path, failed);
    if (is_there) console.warn(fmt::format("{}: damaged: {}; passed over", chosen.path, *damage));
    if (passed_) passed_(step);
  }
  return std::nullopt;
}

std::optional<ChosenCheckpoint> CheckpointQueue::next(Console& console) {
  while (true) {
    if (auto found = look(console)) {
      has_said_so_ = false;
      return found;
    }
    if (!waits_ || std::chrono::steady_clock::now() >= deadline_) return std::nullopt;
    if (!std::exchange(has_said_so_, true)) console.info("waiting for the next checkpoint");
    std::this_thread::sleep_for(kLookEvery);
    throw_if_signal_arrived();
  }
}

}  // namespace stepop
