#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// The distance of two tensors of one shape, by the `criterion` of a loss: `l1` and `l2`, the means
/// of absolute and of squared differences, `cosine`, the mean over the examples of one minus their
/// cosine similarity, or the mean of a registered loss function (STEPOP_REGISTER_LOSS_FUNCTION).
class Criterion {
 public:
  /// Throws UsageError for another name.
  explicit Criterion(const Config& params);

  /// [], in float32. Throws Error for different shapes.
  at::Tensor operator()(const at::Tensor& a, const at::Tensor& b) const;

 private:
  std::string name_;
  /// A registered loss function; empty for the three names above.
  std::function<at::Tensor(const std::vector<at::Tensor>&)> function_;
};

}  // namespace stepop::extensible
