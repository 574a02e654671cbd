#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace stepop {

/// During its lifetime, LibTorch's default generators start from `seed`; afterwards they continue
/// as if nothing had been drawn. So the frequency of logs never changes the training.
class RandomFork {
 public:
  RandomFork(uint64_t seed, const c10::Device& device);
  ~RandomFork();
  RandomFork(const RandomFork&) = delete;
  RandomFork& operator=(const RandomFork&) = delete;

 private:
  c10::Device device_;
  at::Tensor cpu_state_;
  at::Tensor device_state_;
};

}  // namespace stepop
