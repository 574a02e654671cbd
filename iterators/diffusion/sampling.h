#pragma once

#include <ATen/core/Tensor.h>

#include "iterators/diffusion/gaussian_diffusion.h"

namespace stepop::diffusion {

struct SamplingOptions {
  bool use_ddim = false;  ///< Denoising diffusion implicit models (Song et al., 2020), else DDPM.
  double eta = 0;         ///< For DDIM: 0 adds no noise, 1 as much as DDPM.
  bool clips = true;      ///< The predicted x at the start is clipped to [-1, 1].
};

/// Samples [B, C, ...] from `noise`, through the taken timesteps from the last to the first.
/// Without gradients. Random numbers come from the default generator.
at::Tensor sample(const GaussianDiffusion& diffusion, const GaussianDiffusion::Model& model,
                  const at::Tensor& noise, const SamplingOptions& options = {});

}  // namespace stepop::diffusion
