#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/core/base/ordered_map.h"

namespace stepop::losses {

/// Losses from two tensors of one shape to one number an example, [B]; the mean of these is a
/// batch's loss. Each throws Error for two shapes, or for too few dimensions.

/// The mean of |a - b| over all dimensions but the first.
at::Tensor l1(const at::Tensor& a, const at::Tensor& b);

/// The mean of (a - b)^2 over all dimensions but the first.
at::Tensor l2(const at::Tensor& a, const at::Tensor& b);

/// How much colours differ apart from how light they are: `l2` of what the mean over the channels
/// leaves. Of images [B, C, H, W], 2 channels or more.
at::Tensor chroma(const at::Tensor& a, const at::Tensor& b);

/// How much edges differ in strength, whichever way they go: `l1` of the absolute differences of
/// horizontal neighbours, plus the same of vertical ones. Of images [B, C, H, W], 2 pixels a side
/// or more. As VUNet has it (github.com/jhaux/VUNet).
at::Tensor image_gradient(const at::Tensor& a, const at::Tensor& b);

/// How much edges differ in strength: `l1` of the lengths of Sobel's gradients of the mean over the
/// channels, sqrt(x^2 + y^2 + 1e-6), with zeros around the image. Of images [B, C, H, W]. As
/// NectarGAN has it (github.com/ZacharyBork/NectarGAN).
at::Tensor sobel(const at::Tensor& a, const at::Tensor& b);

/// How much fine details differ: `l1` of the Laplacians of the mean over the channels, the four
/// neighbours minus four times the pixel, with zeros around the image. Of images [B, C, H, W].
at::Tensor laplacian(const at::Tensor& a, const at::Tensor& b);

/// The Kullback-Leibler divergence of N(p, I) and N(q, I), in nats: the sum of (p - q)^2 / 2 over
/// all dimensions but the first.
at::Tensor unit_gaussian_kl(const at::Tensor& p_mean, const at::Tensor& q_mean);

/// The same summed over stages, by their names. Throws Error when `q_means` has not the same ones.
at::Tensor unit_gaussian_kl(const OrderedMap<at::Tensor>& p_means,
                            const OrderedMap<at::Tensor>& q_means);

}  // namespace stepop::losses
