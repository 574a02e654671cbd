#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>

#include <vector>

#include "runtime/train/optim/optimizer.h"

namespace stepop {

/// An optimizer whose kernels have no flag that makes them do nothing: when a GPU checks for NaN,
/// the host waits for the result.
class ForeachOptimizer : public Optimizer {
 protected:
  using Tensors = std::vector<at::Tensor>;
  using Optimizer::Optimizer;

  virtual void change(const Bucket& bucket, double lr, double weight_decay) = 0;

  /// The gradients with the weight decay added, as in torch.optim.
  static Tensors decayed(const Bucket& bucket, double weight_decay) {
    if (weight_decay == 0) return bucket.gradients;
    return at::_foreach_add(bucket.gradients, bucket.parameters, weight_decay);
  }

 private:
  void update(const Bucket& bucket, double lr, double weight_decay) final {
    if (bucket.found_inf && bucket.found_inf->item<float>() != 0) return;
    change(bucket, lr, weight_decay);
  }
};

}  // namespace stepop
