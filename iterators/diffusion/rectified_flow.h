#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace stepop::diffusion {

/// Rectified flow (Liu et al., 2022): straight lines from data x, at time 0, to noise, at time 1. A
/// network learns the velocity along these lines, noise - x.
///
/// The network maps x at time t [B, ...] and t [B], in [0, 1], to the velocity [B, ...].
using Velocity = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& t)>;

/// The point of each line at its time: (1 - t) x + t noise. `t` is [B].
at::Tensor point_on_line(const at::Tensor& x, const at::Tensor& noise, const at::Tensor& t);

/// The mean squared error of the velocity at these times for each example: [B].
at::Tensor rectified_flow_loss(const Velocity& velocity, const at::Tensor& x,
                               const at::Tensor& noise, const at::Tensor& t);

/// The distribution of the times in training: uniform, or denser in the middle, sigmoid(N(0, 1))
/// (Esser et al., 2024).
enum class FlowTimes { kUniform, kLogitNormal };

/// `count` random times, [count] float32.
at::Tensor random_times(int64_t count, FlowTimes times, const at::Device& device);

/// Turns noise into samples by `steps` equal steps of Euler's method. Without gradients.
///
/// game_gen's `ode_sampling` has the same steps for a network with another time s, from noise at
/// 0.001 to data at 1, that is given 999 s and returns data - noise. For such a network,
/// `velocity(x, t)` is minus its output at s = 0.001 + 0.999 (1 - t).
at::Tensor sample_flow(const Velocity& velocity, const at::Tensor& noise, int64_t steps);

}  // namespace stepop::diffusion
