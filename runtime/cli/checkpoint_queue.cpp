#include "runtime/cli/checkpoint_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/run/signals.h"

namespace stepop {
namespace {

constexpr std::chrono::milliseconds kLookEvery{500};

}  // namespace

CheckpointQueue::CheckpointQueue(std::string folder, int64_t evaluated, bool waits,
                                 Deadline deadline)
    : folder_(std::move(folder)), evaluated_(evaluated), waits_(waits), deadline_(deadline) {}

std::optional<std::string> CheckpointQueue::next(Console& console) {
  while (true) {
    const std::vector<int64_t> steps = folder_.steps();
    for (auto step = std::upper_bound(steps.begin(), steps.end(), evaluated_); step != steps.end();
         ++step) {
      throw_if_signal_arrived();
      evaluated_ = *step;
      std::string path = folder_.path_of(*step);
      const auto damage = verify_checkpoint(path);
      if (!damage) {
        has_told_ = false;
        return path;
      }
      const auto left = folder_.steps();
      const bool is_there = std::binary_search(left.begin(), left.end(), *step);
      if (is_there) console.warn(fmt::format("{}: damaged: {}; passed over", path, *damage));
    }
    if (!waits_ || std::chrono::steady_clock::now() >= deadline_) return std::nullopt;
    if (!std::exchange(has_told_, true)) console.info("waiting for the next checkpoint");
    std::this_thread::sleep_for(kLookEvery);
    throw_if_signal_arrived();
  }
}

}  // namespace stepop
