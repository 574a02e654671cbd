#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// The distance of two tensors of one shape, by the `criterion` of a loss: `l1` and `l2`, the means
/// of absolute and of squared differences, or `cosine`, the mean over the examples of one minus
/// their cosine similarity.
class Criterion {
 public:
  /// Throws UsageError for another name.
  explicit Criterion(const Config& params);

  /// [], in float32. Throws Error for different shapes.
  at::Tensor operator()(const at::Tensor& a, const at::Tensor& b) const;

 private:
  std::string name_;
};

}  // namespace stepop::extensible
