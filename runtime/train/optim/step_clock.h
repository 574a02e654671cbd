#pragma once

#include <cstdint>

namespace stepop {

/// Where the training is, for what depends on it inside of an update. The loop owns it.
struct StepClock {
  int64_t global_step = 0;     ///< Training steps that are complete.
  int64_t micro_batch = 0;     ///< The batch within the step, from 0; counts with `accumulate`.
  int64_t micro_batches = 1;   ///< Batches in this step.
  int64_t batch_examples = 0;  ///< Examples in this batch.
  int64_t step_examples = 0;   ///< Examples in all batches of this step; 0 when not known.
  /// False in one of several processes that has no example of this batch, and runs another in its
  /// place.
  bool counts = true;
  /// A log op runs on one of the first batches of a step; it also runs on the last.
  bool logs_part = false;

  bool is_last_micro_batch() const { return micro_batch + 1 == micro_batches; }

  /// The weight of this batch's loss in the loss of the step: its share of the step's examples, so
  /// that means over accumulated batches add up to the mean over one large batch. When the numbers
  /// of examples are not known, all batches have the same weight.
  double loss_weight() const {
    if (step_examples == 0) return 1.0 / static_cast<double>(micro_batches);
    return static_cast<double>(batch_examples) / static_cast<double>(step_examples);
  }
};

}  // namespace stepop
