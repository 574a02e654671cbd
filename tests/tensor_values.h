#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace stepop {

/// The elements of a tensor in order, for comparisons.
template <class T>
std::vector<T> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.cpu().contiguous();
  const T* begin = flat.const_data_ptr<T>();
  return {begin, begin + flat.numel()};
}

}  // namespace stepop
