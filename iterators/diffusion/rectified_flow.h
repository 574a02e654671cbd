#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace stepop::diffusion {

/// Rectified flow (Liu et al., 2022): straight lines from data x, at time 0, to noise, at time 1.
/// A network learns the velocity along them, noise - x.
///
/// The network: x at time t [B, ...] and t [B], in [0, 1], to the velocity [B, ...].
using Velocity = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& t)>;

/// Where each line is at its time: (1 - t) x + t noise. `t` is [B].
at::Tensor point_on_line(const at::Tensor& x, const at::Tensor& noise, const at::Tensor& t);

/// The squared error of the velocity at these times, its mean over each example: [B].
at::Tensor rectified_flow_loss(const Velocity& velocity, const at::Tensor& x,
                               const at::Tensor& noise, const at::Tensor& t);

/// Which times a training sees: all alike, or mostly those in the middle, sigmoid(N(0, 1)) (Esser
/// et al., 2024).
enum class FlowTimes { kUniform, kLogitNormal };

/// `count` of them at random, [count] float32.
at::Tensor random_times(int64_t count, FlowTimes times, const at::Device& device);

/// From noise to samples, in `steps` equal steps of Euler's method: game_gen's `ode_sampling`.
/// Without gradients.
at::Tensor sample_flow(const Velocity& velocity, const at::Tensor& noise, int64_t steps);

}  // namespace stepop::diffusion
