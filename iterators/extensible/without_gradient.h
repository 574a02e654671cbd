#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

namespace stepop::extensible {

/// While it lives, a network is in evaluation mode and no graph is made.
class WithoutGradient {
 public:
  explicit WithoutGradient(torch::nn::Module& network)
      : network_(network), was_training_(network.is_training()) {
    if (was_training_) network_.eval();
  }
  ~WithoutGradient() {
    if (was_training_) network_.train();
  }
  WithoutGradient(const WithoutGradient&) = delete;
  WithoutGradient& operator=(const WithoutGradient&) = delete;

 private:
  torch::nn::Module& network_;
  bool was_training_;
  at::NoGradGuard no_grad_;
};

}  // namespace stepop::extensible
