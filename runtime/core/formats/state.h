#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace stepop {

/// Named tensors: the state of a network, an optimizer or a counter in a checkpoint. A number is a
/// tensor without dimensions (int64 or float64).
using State = std::map<std::string, at::Tensor>;

}  // namespace stepop
