#include "runtime/core/pictures/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/axes.h"

namespace stepop {
namespace {

/// Clamps finite numbers so that the distance between any two is finite as well.
std::vector<double> numbers_of(const at::Tensor& values) {
  constexpr double kLargest = 8e307;
  const at::Tensor all = values.detach().to(at::kCPU, at::kDouble).contiguous();
  std::vector<double> numbers(all.const_data_ptr<double>(),
                              all.const_data_ptr<double>() + all.numel());
  for (double& number : numbers) {
    if (std::isfinite(number)) number = std::clamp(number, -kLargest, kLargest);
  }
  return numbers;
}

/// The axis of the finite numbers; from 0 to 1 without any.
Axis axis_of(const std::string& name, const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return number_axis(name, 0, 1);
  const auto [begin, end] = range_with_room(low, high, Plot::kWidth);
  return number_axis(name, begin, end);
}

}  // namespace

void check_curve(const Curve& curve, const std::string& name) {
  const auto is_row = [](const at::Tensor& values) {
    return values.defined() && values.dim() == 1 && !values.is_complex();
  };
  const auto described = [](const at::Tensor& values) {
    return values.defined() ? describe_tensor(values) : std::string("an undefined tensor");
  };
  if (is_row(curve.x) && is_row(curve.y) && curve.x.size(0) == curve.y.size(0) &&
      curve.x.size(0) > 0) {
    return;
  }
  throw Error(fmt::format(
      "{}: expected a curve, real x and y [N] with N of 1 or more; found for x {}, for y {}", name,
      described(curve.x), described(curve.y)));
}

std::string curve_picture(const Curve& curve) {
  const std::vector<double> x = numbers_of(curve.x);
  const std::vector<double> y = numbers_of(curve.y);
  Plot plot(axis_of(curve.x_name, x), axis_of(curve.y_name, y));
  const auto is_finite = [&](size_t i) { return std::isfinite(x[i]) && std::isfinite(y[i]); };
  for (size_t i = 0; i < x.size(); ++i) {
    if (!is_finite(i)) continue;
    const std::pair here{plot.x(x[i]), plot.y(y[i])};
    if (i > 0 && is_finite(i - 1)) {
      plot.line({plot.x(x[i - 1]), plot.y(y[i - 1])}, here);
    } else {
      plot.dot(here);
    }
  }
  return plot.png();
}

}  // namespace stepop
