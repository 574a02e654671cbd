#pragma once

#include <string>

#include "iterators/extensible/gate.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/optim/update.h"

namespace stepop::extensible {

/// The update of a step, from `optimizer`, `optimizer_params` and `clip_grad_eps` of the step and
/// the learning rates of `train`. Weights are one group; biases, and the parameters of norms and
/// embeddings, which do not decay, another one: `clip_grad_eps` bounds the norm of each by itself,
/// with `clip_by: all` that over both.
Update& update_of_step(const Context& context, const std::string& step, const std::string& network);

/// `after` and `before` of `optimizer_params`, in which `before: -1` is no limit.
Gate gate_of_optimizer(const Config& params);

}  // namespace stepop::extensible
