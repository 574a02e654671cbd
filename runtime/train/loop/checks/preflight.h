#pragma once

#include <string>
#include <vector>

#include "runtime/train/iterator/iterator.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// What the preflight found that is no mistake.
struct Findings {
  std::vector<std::string> names;  ///< Full ones of the numbers that ops gave: train/log_op/loss.
  std::vector<std::string> warnings;
};

/// Finds mistakes before a run has its folder: one batch of each split goes through `step_op` and
/// every log and eval op that the config will ever call; nothing of it is kept, neither in the
/// networks' buffers nor in what is tracked nor in the random state. Train
/// ops are not run: what they change could not all be put back. What an optimizer forgot is found
/// by parameter_ownership.h, which also watches the first losses. Also runs the last batch of an
/// epoch and of an evaluation where it is smaller than the others. Throws Error that names the
/// iterator's op and the key. Leaves the default log ops that `step_op` did not return out of
/// `settings`.
Findings preflight(Settings& settings, bool train, Iterator& iterator, const Context& context,
                   Position& position);

}  // namespace stepop
