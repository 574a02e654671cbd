#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>

#include <string>

#include "runtime/core/formats/state.h"

namespace stepop {

/// The names of the tensors in which two states differ in a single bit; empty when in none.
inline std::string differences(const State& a, const State& b) {
  std::string names;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    const bool same = other != b.end() && tensor.scalar_type() == other->second.scalar_type() &&
                      tensor.sizes() == other->second.sizes() &&
                      at::equal(tensor.contiguous().flatten().view(at::kByte),
                                other->second.contiguous().flatten().view(at::kByte));
    if (!same) names += name + " ";
  }
  for (const auto& [name, tensor] : b) {
    if (!a.contains(name)) names += name + " ";
  }
  return names;
}

}  // namespace stepop
