#pragma once

#include <ATen/core/Tensor.h>

#include "iterators/diffusion/gaussian_diffusion.h"

namespace stepop::diffusion {

struct SamplingOptions {
  bool use_ddim = false;  ///< Denoising diffusion implicit models (Song et al., 2020), else DDPM.
  double eta = 0;         ///< Of DDIM: 0 adds no noise, 1 as much as DDPM.
  bool clips = true;      ///< What is predicted of x at the start is clipped to [-1, 1].
};

/// The start of what ends as `noise`: samples [B, C, ...], from the last of the timesteps that are
/// taken to the first. Without gradients. Random numbers come from the default generator.
at::Tensor sample(const GaussianDiffusion& diffusion, const GaussianDiffusion::Model& model,
                  const at::Tensor& noise, const SamplingOptions& options = {});

}  // namespace stepop::diffusion
