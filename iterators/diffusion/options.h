#pragma once

#include <cstdint>

#include "iterators/diffusion/gaussian_diffusion.h"
#include "runtime/core/config/config.h"

namespace stepop::diffusion {

/// The options of a diffusion from a config, under the names that DL-Art-School has for them:
/// `beta_schedule: {schedule_name: linear, num_diffusion_timesteps: 1000}` and `diffusion_args:
/// {model_mean_type: epsilon, model_var_type: learned_range, loss_type: mse, rescale_timesteps:
/// false}`. Throws UsageError with the place for what cannot be.
DiffusionOptions read_options(const Config& params);

/// Takes the timesteps that `respaced_timestep_spacing` says, all when it is missing: a number, or
/// a text as `spaced_timesteps` has it. `use_ddim`: a number takes them with one integer stride.
void read_spacing(const Config& params, bool use_ddim, DiffusionOptions& options);

}  // namespace stepop::diffusion
