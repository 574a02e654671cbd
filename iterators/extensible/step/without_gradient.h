#pragma once

#include <ATen/core/grad_mode.h>

#include "runtime/train/networks/evaluation_mode.h"

namespace stepop::extensible {

/// Keeps a network in evaluation mode, and makes no graph, during its lifetime.
struct WithoutGradient {
  explicit WithoutGradient(torch::nn::Module& network) : mode(network) {}

  EvaluationMode mode;
  at::NoGradGuard no_grad;
};

}  // namespace stepop::extensible
