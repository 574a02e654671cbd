#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace stepop {

/// The name under which the state of LibTorch's random generators is tracked.
inline constexpr const char* kRandomState = "random";

/// Seeds LibTorch's default generators of the CPU and of the device.
void seed_generators(uint64_t seed, const c10::Device& device);

/// The state of the default generator as a byte tensor, and its restoration.
at::Tensor generator_state(const c10::Device& device);
void set_generator_state(const c10::Device& device, const at::Tensor& state);
/// The same in a destructor: does nothing when the device has failed, which an error tells then.
void restore_generator_state(const c10::Device& device, const at::Tensor& state) noexcept;

}  // namespace stepop
