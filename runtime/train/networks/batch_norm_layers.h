#pragma once

#include <torch/nn/modules/batchnorm.h>

namespace stepop {

/// Calls `visit` with the module as a batch normalization layer, if it is such a layer and has
/// running statistics.
template <class Visit>
void visit_batch_norm(torch::nn::Module& module, const Visit& visit) {
  const auto visit_as = [&](auto* layer) {
    if (layer != nullptr && layer->running_mean.defined()) visit(*layer);
  };
  visit_as(dynamic_cast<torch::nn::BatchNorm1dImpl*>(&module));
  visit_as(dynamic_cast<torch::nn::BatchNorm2dImpl*>(&module));
  visit_as(dynamic_cast<torch::nn::BatchNorm3dImpl*>(&module));
}

}  // namespace stepop
