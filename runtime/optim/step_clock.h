#pragma once

#include <cstdint>

namespace stepop {

/// Where the training is, for what depends on it inside of an update. The loop owns it.
struct StepClock {
  int64_t global_step = 0;    ///< Training steps that are complete.
  int64_t micro_batch = 0;    ///< The batch within the step, from 0; counts with `accumulate`.
  int64_t micro_batches = 1;  ///< Batches in this step.

  bool is_last_micro_batch() const { return micro_batch + 1 == micro_batches; }
};

}  // namespace stepop
