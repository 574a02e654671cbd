#pragma once

#include <ATen/core/Tensor.h>

namespace stepop::diffusion {

/// The Kullback-Leibler divergence of normal distributions from others, elementwise, in nats.
at::Tensor normal_kl(const at::Tensor& mean, const at::Tensor& log_variance,
                     const at::Tensor& other_mean, const at::Tensor& other_log_variance);

/// The logarithm of the probability of `x`, images of 256 levels in [-1, 1], under normal
/// distributions that are discretized to these levels; elementwise, in nats (Ho et al., 2020).
at::Tensor discretized_log_likelihood(const at::Tensor& x, const at::Tensor& mean,
                                      const at::Tensor& log_scale);

}  // namespace stepop::diffusion
