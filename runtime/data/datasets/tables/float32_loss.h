#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace stepop {

/// The standard deviation of float64 numbers and the most that float32 rounds them by, relative to
/// it; 0 where they do not vary. NaN and infinity are left out.
struct Float32Loss {
  double deviation = 0;
  double share = 0;
};
/// From this share on, float64 is kept beside the floats.
inline constexpr double kLeastFloat32Loss = 1e-5;
Float32Loss float32_loss(const at::Tensor& numbers);

/// A warning when float32 rounds away a thousandth of a standard deviation or more of these float64
/// numbers, [rows] or [rows, places]; else empty. `file` and `key` say which numbers they are,
/// `whole` where a Standardized goes: the table.
std::string float32_notice(const at::Tensor& numbers, const std::string& file,
                           const std::string& key, std::string_view whole);

}  // namespace stepop
