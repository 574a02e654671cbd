#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// `range: [-1, 1]`, the values of black and white.
class PictureRange {
 public:
  /// Throws UsageError unless it is two numbers, the first the lower.
  explicit PictureRange(const Config& params);

  /// Pictures [B, C, H, W] as float64 with black at 0 and white at 1; what lies outside stays.
  /// Throws Error for a tensor that is none.
  at::Tensor to_unit(const at::Tensor& pictures) const;

  /// Throws Error when true pictures have values beyond the range: it is another one then.
  void check(const at::Tensor& real) const;

 private:
  std::vector<double> range_;
};

}  // namespace stepop::extensible
