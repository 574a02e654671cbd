#pragma once

#include <ATen/core/Tensor.h>

#include <variant>

#include "runtime/ordered_map.h"

namespace stepop {

/// A number, or a tensor with one element that stays on its device until it is logged.
using Scalar = std::variant<double, at::Tensor>;

/// What `log_op` returns. A slash in a name makes a folder.
struct Logs {
  OrderedMap<Scalar> scalars;
  /// Batches of images [B, C, H, W] in [-1, 1], C = 1 or 3, shown as one grid each.
  OrderedMap<at::Tensor> images;
};

}  // namespace stepop
