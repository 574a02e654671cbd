#include "runtime/cli/checkpoint_queue.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "runtime/run/signals.h"

namespace stepop {
namespace {

constexpr std::chrono::milliseconds kLookEvery{500};

}  // namespace

CheckpointQueue::CheckpointQueue(std::string folder, bool waits, Deadline deadline)
    : folder_(std::move(folder)), waits_(waits), deadline_(deadline) {}

/// Takes note of it.
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

std::optional<ChosenCheckpoint> CheckpointQueue::next(Console& console) {
  while (true) {
    for (const int64_t step : folder_.steps()) {
      throw_if_signal_arrived();
      if (!is_new(step)) continue;
      ChosenCheckpoint chosen{folder_.path_of(step), {}};
      const auto damage = try_load_checkpoint(chosen.path, chosen.checkpoint);
      if (!damage) {
        has_told_ = false;
        return chosen;
      }
      std::error_code failed;
      const bool is_there = std::filesystem::exists(chosen.path, failed);
      if (is_there) console.warn(fmt::format("{}: damaged: {}; passed over", chosen.path, *damage));
    }
    if (!waits_ || std::chrono::steady_clock::now() >= deadline_) return std::nullopt;
    if (!std::exchange(has_told_, true)) console.info("waiting for the next checkpoint");
    std::this_thread::sleep_for(kLookEvery);
    throw_if_signal_arrived();
  }
}

}  // namespace stepop
