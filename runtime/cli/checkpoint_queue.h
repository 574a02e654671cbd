#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/log/console.h"

namespace stepop {

/// The checkpoints of a run one after the other, by their steps, for evaluating each.
class CheckpointQueue {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Those after the step `evaluated`. With `waits`, also those that a training is going to write,
  /// until the deadline.
  CheckpointQueue(std::string folder, int64_t evaluated, bool waits, Deadline deadline);

  /// The path of the next one; none when there is none. One that is damaged is passed over with a
  /// warning, one that the training has removed meanwhile without. Throws Interrupted when a signal
  /// arrives while it waits.
  std::optional<std::string> next(Console& console);

 private:
  CheckpointFolder folder_;
  int64_t evaluated_;
  bool waits_;
  Deadline deadline_;
  bool has_told_ = false;
};

}  // namespace stepop
