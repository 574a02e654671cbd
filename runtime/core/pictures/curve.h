#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace stepop {

/// A line through points, such as precision against recall.
struct Curve {
  at::Tensor x;  ///< [N], any real type, on any device.
  at::Tensor y;  ///< The same number of values.
  std::string x_name = "x";
  std::string y_name = "y";
};

/// Throws Error with `name` unless x and y are real and [N] with N of at least 1.
void check_curve(const Curve& curve, const std::string& name);

/// The curve as the bytes of a PNG file, with axes. A point that is not finite breaks the line.
std::string curve_picture(const Curve& curve);

}  // namespace stepop
