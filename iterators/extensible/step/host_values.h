#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>

#include <cstdint>
#include <vector>

namespace stepop::extensible {

/// A random number in [0, choices) from the training's CPU generator, which a resume restores.
inline int64_t draw(int64_t choices) {
  return at::randint(choices, {1}, at::kLong).item<int64_t>();
}

/// The integers of a tensor of any shape and device, in its order.
inline std::vector<int64_t> host_values(const at::Tensor& numbers) {
  const at::Tensor host = numbers.to(at::kCPU, at::kLong).contiguous();
  const auto* begin = host.const_data_ptr<int64_t>();
  return {begin, begin + host.numel()};
}

}  // namespace stepop::extensible
