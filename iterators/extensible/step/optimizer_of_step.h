#pragma once

#include <string>

#include "iterators/extensible/step/gate.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/optim/update.h"

namespace stepop::extensible {

/// The update of a step, from `optimizer`, `optimizer_params` and `clip_grad_eps` of the step and
/// the learning rates of `train`. Weights are one group; biases, and the parameters of norms and
/// embeddings, which do not decay, are another. `clip_grad_eps` limits the norm of each group
/// separately, or with `clip_by: all` the norm over both.
Update& update_of_step(const Context& context, const std::string& step, const std::string& network);

/// The gate of `after` and `before` in `optimizer_params`; `before: -1` means no limit.
Gate gate_of_optimizer(const Config& params);

}  // namespace stepop::extensible
