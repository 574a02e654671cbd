#pragma once

#include <ATen/core/Tensor.h>

#include "eval_out/callbacks/row_values.h"

namespace stepop {

/// Throws Error unless each row of `values` is an image: [C, H, W] with C = 1 or 3, or [H, W], of
/// floats in [-1, 1] or of uint8.
void check_images(const RowValues& values);

/// The rows of such values as float images [rows, C, H, W] in [-1, 1]; 0 of uint8 is -1 and 255 is
/// 1. What lies outside stays.
at::Tensor to_images(const at::Tensor& rows);

}  // namespace stepop
