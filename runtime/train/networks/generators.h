#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

#include "runtime/core/formats/state.h"

namespace stepop {

/// The name under which the state of LibTorch's random generators is tracked.
inline constexpr const char* kRandomState = "random";

/// Seeds LibTorch's default generators of the CPU and of the device.
void seed_generators(uint64_t seed, const c10::Device& device);

/// Copies of the default generators of the CPU and of the device: much cheaper than their states.
class GeneratorCopies {
 public:
  explicit GeneratorCopies(const c10::Device& device);
  /// What is tracked as kRandomState: `cpu`, and `cuda` with a device.
  State state() const;

 private:
  at::Generator cpu_;
  at::Generator device_;  ///< Undefined on the CPU.
};

/// The state of the default generator as a byte tensor, and its restoration.
at::Tensor generator_state(const c10::Device& device);
void set_generator_state(const c10::Device& device, const at::Tensor& state);
/// The same in a destructor: does nothing when the device has failed, which an error tells then.
void restore_generator_state(const c10::Device& device, const at::Tensor& state) noexcept;

}  // namespace stepop
