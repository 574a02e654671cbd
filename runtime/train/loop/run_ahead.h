#pragma once

#include <cstdint>
#include <functional>

#include "runtime/core/log/console.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// Keeps a training from running too far ahead of the evaluations of `eval_forever`, which another
/// process makes of its checkpoints: `run_ahead: 2e`.
class RunAhead {
 public:
  /// `most_steps`: how far it may be ahead; 0 for any. All must outlive it.
  RunAhead(const RunDirectory& run, Console& console, int64_t most_steps)
      : run_(run), console_(console), most_steps_(most_steps) {}

  /// After a checkpoint of `step` is on the disk: waits while the newest one that was evaluated is
  /// so many steps behind, or until `is_to_stop`. Says so when it begins to wait, and how long it
  /// did.
  void wait(int64_t step, const std::function<bool()>& is_to_stop);

 private:
  bool is_too_far(int64_t step) const;

  const RunDirectory& run_;
  Console& console_;
  int64_t most_steps_;
};

}  // namespace stepop
