#pragma once

#include <ATen/core/Tensor.h>

namespace stepop {

/// Whether libwebp is installed.
bool has_webp();

/// Loads libwebp. Throws Error with how it is installed when it cannot be loaded.
void need_webp();

/// The uint8 picture [H, W, 3] on the CPU, compressed to a WebP with losses and unpacked again.
/// `quality` is 1 to 100. Throws Error for a side of more than 16,383 pixels, which no WebP has.
at::Tensor through_webp_bytes(const at::Tensor& picture, int quality);

}  // namespace stepop
