#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// `range: [-1, 1]`, the values of black and white.
class PictureRange {
 public:
  /// Throws UsageError unless `range` is two numbers, the lower first.
  explicit PictureRange(const Config& params);

  /// Pictures [B, C, H, W] as float64 with black at 0 and white at 1, without clamping. Throws
  /// Error for a tensor of another shape.
  at::Tensor to_unit(const at::Tensor& pictures) const;

  /// Throws Error when true pictures have values beyond the range, so that the range is wrong.
  void check(const at::Tensor& real) const;

 private:
  std::vector<double> range_;
};

}  // namespace stepop::extensible
