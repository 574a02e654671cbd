#pragma once

#include <string>
#include <vector>

#include "runtime/train/checks/callback_names.h"
#include "runtime/train/checks/convolution_count.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// Results of the preflight that are no errors.
struct Findings {
  std::vector<std::string> names;  ///< Full names of the numbers from ops: train/log_op/loss.
  std::vector<std::string> warnings;
  std::vector<EvaluatedBatch> evaluated;  ///< The first of each evaluation that has callbacks.
  ConvolutionCount convolutions;
};

/// Finds mistakes before a run has its folder: one batch of each split goes through `step_op` and
/// every log and eval op that the config will ever call. Afterwards the networks' buffers, the
/// tracked objects and the random state are restored. Train ops do not run, because not all of
/// their changes could be undone; parameter_ownership.h finds parameters that an optimizer lacks,
/// and also watches the first losses. The last batch of an epoch and of an evaluation is tried too
/// if it is smaller than the others. Throws Error that names the iterator's op and the key. Removes
/// from `settings` the default log ops that `step_op` did not return.
Findings preflight(Settings& settings, bool train, Iterator& iterator, const Context& context,
                   Position& position);

}  // namespace stepop
