#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepop::diffusion {

/// The variance that each of `timesteps` steps adds, as in guided-diffusion: `linear` (Ho et al.,
/// 2020, for any number of steps) or `cosine` (Nichol and Dhariwal, 2021). Throws Error for another
/// name, and for a number of steps that the schedule cannot have.
std::vector<double> beta_schedule(std::string_view name, int64_t timesteps);

/// Which of `timesteps` steps are taken, ascending: `50`, so many, evenly spaced; `10,15,20`, so
/// many in each of three sections of equal length; `ddim50`, 50 with one integer stride, as in the
/// paper of DDIM. Throws Error when there are not so many.
std::vector<int64_t> spaced_timesteps(int64_t timesteps, const std::string& spacing);

}  // namespace stepop::diffusion
