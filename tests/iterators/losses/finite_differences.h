#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace stepop {

/// The largest difference between the gradient of a random weighted sum of `function(x)` and its
/// central differences; float64 `x`.
inline double gradient_error(const std::function<at::Tensor(const at::Tensor&)>& function,
                             const at::Tensor& x) {
  constexpr double kStep = 1e-6;
  const at::Tensor variable = x.detach().clone().set_requires_grad(true);
  const at::Tensor value = function(variable);
  const at::Tensor weights = at::randn(value.sizes(), value.options());
  (value * weights).sum().backward();
  const at::NoGradGuard no_grad;
  const at::Tensor found = variable.grad().flatten();
  at::Tensor point = x.detach().clone().contiguous();
  const auto at_point = [&] { return (function(point) * weights).sum().item<double>(); };
  double error = 0;
  for (int64_t i = 0; i < point.numel(); ++i) {
    double& number = point.mutable_data_ptr<double>()[i];
    const double before = number;
    number = before + kStep;
    const double above = at_point();
    number = before - kStep;
    const double slope = (above - at_point()) / (2 * kStep);
    number = before;
    error = std::max(error, std::abs(slope - found[i].item<double>()));
  }
  return error;
}

}  // namespace stepop
