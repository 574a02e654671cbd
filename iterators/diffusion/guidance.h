#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace stepop::diffusion {

/// A network that maps x [B, C, ...], times or timesteps [B] and classes [B] to a prediction
/// [B, C, ...], or [B, 2 C, ...] with learned variances.
using ConditionalModel =
    std::function<at::Tensor(const at::Tensor& x, const at::Tensor& t, const at::Tensor& classes)>;

/// Classifier-free guidance (Ho and Salimans, 2022): the prediction for `classes`, moved away from
/// the prediction for `null_class`, which stands for no class:
///
///   none + scale (classes - none)
///
/// for the first C channels; further channels, the variances, come from `classes`. With scale 1 the
/// network is called for `classes` alone, otherwise once with both. The result is a model for
/// `sample`, with DDPM or DDIM, and for `sample_flow`.
std::function<at::Tensor(const at::Tensor& x, const at::Tensor& t)> with_guidance(
    ConditionalModel model, at::Tensor classes, int64_t null_class, double scale);

/// The classes for training with guidance: each becomes `null_class` with this probability.
at::Tensor drop_classes(const at::Tensor& classes, int64_t null_class, double probability);

}  // namespace stepop::diffusion
