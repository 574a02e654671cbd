#pragma once

#include <cstdint>
#include <functional>

#include "runtime/core/log/console.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// Keeps a training from running too far ahead of the evaluations of `eval_forever`, which another
/// process runs on its checkpoints: `run_ahead: 2e`.
class RunAhead {
 public:
  /// `most_steps`: how far the training may be ahead; 0 for no limit. All arguments must outlive
  /// it.
  RunAhead(const RunDirectory& run, Console& console, int64_t most_steps)
      : run_(run), console_(console), most_steps_(most_steps) {}

  /// Called after the checkpoint of `step` is on the disk. Waits while the newest evaluated
  /// checkpoint is `most_steps` or more steps older, or until `is_to_stop`. Logs when the wait
  /// begins, and how long it lasted.
  void wait(int64_t step, const std::function<bool()>& is_to_stop);

 private:
  bool is_too_far(int64_t step) const;

  const RunDirectory& run_;
  Console& console_;
  int64_t most_steps_;
};

}  // namespace stepop
