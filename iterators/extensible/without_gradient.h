#pragma once

#include <ATen/core/grad_mode.h>

#include "runtime/train/networks/evaluation_mode.h"

namespace stepop::extensible {

/// While it lives, a network is in evaluation mode and no graph is made.
struct WithoutGradient {
  explicit WithoutGradient(torch::nn::Module& network) : mode(network) {}

  EvaluationMode mode;
  at::NoGradGuard no_grad;
};

}  // namespace stepop::extensible
