#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepop::diffusion {

/// The variance that each of `timesteps` steps adds, as in guided-diffusion: `linear` (Ho et al.,
/// 2020, scaled to the number of steps) or `cosine` (Nichol and Dhariwal, 2021). Throws Error for
/// another name, and for too few steps for the schedule.
std::vector<double> beta_schedule(std::string_view name, int64_t timesteps);

/// The steps that are taken out of `timesteps`, ascending: `50`, that number, evenly spaced;
/// `10,15,20`, these numbers in three sections of equal length; `ddim50`, 50 with one integer
/// stride, as in the paper of DDIM. Throws Error when these numbers of steps cannot be taken.
std::vector<int64_t> spaced_timesteps(int64_t timesteps, const std::string& spacing);

}  // namespace stepop::diffusion
