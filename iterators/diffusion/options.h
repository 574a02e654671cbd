#pragma once

#include <cstdint>

#include "iterators/diffusion/gaussian_diffusion.h"
#include "runtime/core/config/config.h"

namespace stepop::diffusion {

/// Reads the options of a diffusion from a config, under DL-Art-School's names: `beta_schedule:
/// {schedule_name: linear, num_diffusion_timesteps: 1000}` and `diffusion_args: {model_mean_type:
/// epsilon, model_var_type: learned_range, loss_type: mse, rescale_timesteps: false}`. Throws
/// UsageError with the place for invalid options.
DiffusionOptions read_options(const Config& params);

/// Sets the taken timesteps from `respaced_timestep_spacing`, by default all: a number, or a text
/// for `spaced_timesteps`. `use_ddim`: a number means one integer stride.
void read_spacing(const Config& params, bool use_ddim, DiffusionOptions& options);

}  // namespace stepop::diffusion
