#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stepop::diffusion {

/// The timesteps of sequences whose elements lose their noise one after the other.
struct CausalTimesteps {
  at::Tensor t;        ///< [B, 1, length], int64, from 0 to `timesteps` - 1.
  at::Tensor is_open;  ///< The same shape, bool: elements that have begun, and are not over yet.
};

/// Each element is `slope` timesteps ahead of the one before it, and `t` [B], int64, goes over all
/// of them: at 0 every element is over, at `timesteps` none has begun. `jitter`, from -1 to 1:
/// where in the gap between two such t. As in DL-Art-School.
CausalTimesteps causal_timesteps(const at::Tensor& t, int64_t length, int64_t timesteps,
                                 double slope, double jitter);

}  // namespace stepop::diffusion
