#pragma once

#include <ATen/core/Tensor.h>

namespace stepop {

/// Whether every number of a floating-point tensor is finite. On the CPU one pass over the memory;
/// waits for any other device.
bool is_finite(const at::Tensor& tensor);

/// The first number that is not finite, in the order of the elements; 0 when all are.
double first_non_finite(const at::Tensor& tensor);

}  // namespace stepop
