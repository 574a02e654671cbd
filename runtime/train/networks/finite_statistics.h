#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace stepop {

class Networks;

/// Running means and variances as they were before a step, for a step whose update is left out: its
/// batch may have given them NaN, which no later batch takes away. They are known by PyTorch's
/// names, as in SharedBuffers.
class FiniteStatistics {
 public:
  /// `networks` must outlive this.
  explicit FiniteStatistics(const Networks& networks);

  /// Called before a step: copies them.
  void keep();
  /// Gives those that are not finite their values of the last `keep`. Waits for a device.
  void restore();

 private:
  std::vector<at::Tensor> statistics_, kept_;
};

}  // namespace stepop
