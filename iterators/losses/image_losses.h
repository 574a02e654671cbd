#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/core/base/ordered_map.h"

namespace stepop::losses {

/// Losses of two tensors of one shape: one number for each example, [B], whose mean is the batch's
/// loss. Each throws Error for different shapes, or for too few dimensions.

/// The mean of |a - b| over all dimensions but the first.
at::Tensor l1(const at::Tensor& a, const at::Tensor& b);

/// The mean of (a - b)^2 over all dimensions but the first.
at::Tensor l2(const at::Tensor& a, const at::Tensor& b);

/// The difference of colours without lightness: `l2` after the mean over the channels is
/// subtracted. For images [B, C, H, W] with 2 channels or more.
at::Tensor chroma(const at::Tensor& a, const at::Tensor& b);

/// The difference in edge strength, regardless of sign: `l1` of the absolute differences of
/// horizontal neighbours, plus the same for vertical neighbours. For images [B, C, H, W] of 2
/// pixels a side or more. As in VUNet (github.com/jhaux/VUNet).
at::Tensor image_gradient(const at::Tensor& a, const at::Tensor& b);

/// The difference in edge strength: `l1` of the lengths of Sobel's gradients of the mean over the
/// channels, sqrt(x^2 + y^2 + 1e-6), with zero padding. For images [B, C, H, W]. As in NectarGAN
/// (github.com/ZacharyBork/NectarGAN).
at::Tensor sobel(const at::Tensor& a, const at::Tensor& b);

/// The difference in fine details: `l1` of the Laplacians of the mean over the channels, the four
/// neighbours minus four times the pixel, with zero padding. For images [B, C, H, W].
at::Tensor laplacian(const at::Tensor& a, const at::Tensor& b);

/// The Kullback-Leibler divergence of N(p, I) and N(q, I), in nats: the sum of (p - q)^2 / 2 over
/// all dimensions but the first.
at::Tensor unit_gaussian_kl(const at::Tensor& p_mean, const at::Tensor& q_mean);

/// The same, summed over named stages. Throws Error when `q_means` has other stages.
at::Tensor unit_gaussian_kl(const OrderedMap<at::Tensor>& p_means,
                            const OrderedMap<at::Tensor>& q_means);

}  // namespace stepop::losses
