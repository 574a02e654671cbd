#include "iterators/diffusion/likelihood.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <numbers>

namespace stepop::diffusion {
namespace {

/// The approximate distribution function of the standard normal distribution.
at::Tensor cumulative(const at::Tensor& x) {
  return 0.5 * (1.0 + (std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x.pow(3))).tanh());
}

at::Tensor safe_log(const at::Tensor& x) { return x.clamp_min(1e-12).log(); }

}  // namespace

at::Tensor normal_kl(const at::Tensor& mean, const at::Tensor& log_variance,
                     const at::Tensor& other_mean, const at::Tensor& other_log_variance) {
  return 0.5 *
         (-1.0 + other_log_variance - log_variance + (log_variance - other_log_variance).exp() +
          (mean - other_mean).square() * (-other_log_variance).exp());
}

at::Tensor discretized_log_likelihood(const at::Tensor& x, const at::Tensor& mean,
                                      const at::Tensor& log_scale) {
  constexpr double kHalfLevel = 1.0 / 255.0;
  const at::Tensor centered = x - mean;
  const at::Tensor inverse = (-log_scale).exp();
  const at::Tensor above = cumulative(inverse * (centered + kHalfLevel));
  const at::Tensor below = cumulative(inverse * (centered - kHalfLevel));
  // The lowest level extends to minus infinity, the highest level to infinity.
  return at::where(x < -0.999, safe_log(above),
                   at::where(x > 0.999, safe_log(1.0 - below), safe_log(above - below)));
}

}  // namespace stepop::diffusion
