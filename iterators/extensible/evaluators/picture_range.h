#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"

namespace stepop {
namespace extensible {

/// `range: [-1, 1]`, the values of black and white.
class PictureRange {
 public:
  PictureRange() = default;
  /// Throws UsageError unless there are two numbers at `key`, the lower first.
  PictureRange(const Config& params, std::string_view key);

  /// Pictures [B, C, H, W] as float64 with black at 0 and white at 1, without clamping. Throws
  /// Error for a tensor of another shape.
  at::Tensor to_unit(const at::Tensor& pictures) const;

  /// Throws Error when true pictures have values beyond the range, so that the range is wrong.
  void check(const at::Tensor& real) const;

  const std::vector<double>& numbers() const { return range_; }

 private:
  std::vector<double> range_ = {-1, 1};
};

}  // namespace extensible

template <>
struct ParameterOf<extensible::PictureRange> {
  static extensible::PictureRange read(const Config& config, std::string_view path,
                                       const Allowed&) {
    return {config, path};
  }
  static Value shown(const extensible::PictureRange& range) {
    return ParameterOf<std::vector<double>>::shown(range.numbers());
  }
  static std::string kind() { return "list of number"; }
};

}  // namespace stepop
