#pragma once

#include <string>
#include <vector>

#include "runtime/train/iterator/context.h"
#include "runtime/train/iterator/step_ops.h"
#include "runtime/train/when/evaluation_settings.h"

namespace stepop {

/// What the eval op of an evaluation gave for its first batch.
struct EvaluatedBatch {
  EvaluationSettings evaluation;
  EvalOutputs outputs;
  int64_t rows = 0;
};

/// The names of a callback's numbers.
struct CallbackNumbers {
  std::string place;               ///< `validation/eval_op/iou`
  std::vector<std::string> names;  ///< In full: `validation/eval_op/iou/MeanIoU`.
};

/// The numbers that callbacks give, had by calling them over the outputs of one batch, in a folder
/// that is removed again; the random state stays. Those are called of whose numbers one is `asked`,
/// and `with_all` the others too, but no scripts and no metrics in Python, which take seconds. A
/// callback that fails on one batch is left out.
std::vector<CallbackNumbers> numbers_of_callbacks(const Context& context,
                                                  const EvaluatedBatch& batch,
                                                  const std::vector<std::string>& asked,
                                                  bool with_all);

}  // namespace stepop
