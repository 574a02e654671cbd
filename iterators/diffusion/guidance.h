#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace stepop::diffusion {

/// A network of x [B, C, ...], times or timesteps [B] and classes [B] to a prediction [B, C, ...],
/// or [B, 2 C, ...] with learned variances.
using ConditionalModel =
    std::function<at::Tensor(const at::Tensor& x, const at::Tensor& t, const at::Tensor& classes)>;

/// Classifier-free guidance (Ho and Salimans, 2022): the prediction for `classes`, moved away from
/// that for `null_class`, the class that stands for none:
///
///   none + scale (classes - none)
///
/// of the first C channels; further ones, variances, are those of `classes`. With the scale 1 the
/// network is called for `classes` alone, else once with both. What comes back is a model for
/// `sample`, by DDPM or DDIM, and for `sample_flow`.
std::function<at::Tensor(const at::Tensor& x, const at::Tensor& t)> with_guidance(
    ConditionalModel model, at::Tensor classes, int64_t null_class, double scale);

/// The classes of a training with guidance: each becomes `null_class` with this probability.
at::Tensor drop_classes(const at::Tensor& classes, int64_t null_class, double probability);

}  // namespace stepop::diffusion
