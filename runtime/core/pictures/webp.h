#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "runtime/core/pictures/image_file.h"

namespace stepop {

/// Whether libwebp is installed.
bool has_webp();

/// Whether a file begins as a WebP does.
inline bool is_webp(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8).starts_with("WEBP");
}

/// The pixels of a whole WebP file, with losses or without: 3 channels, or with `has_alpha` 4.
/// Throws Error that begins with `name`, also for a moving picture, for more than kMostPixels, and
/// with how libwebp is installed when it cannot be loaded.
Pixels decode_webp(std::string_view bytes, const std::string& name, bool has_alpha = false);

/// Loads libwebp. Throws Error with how it is installed when it cannot be loaded.
void need_webp();

/// The uint8 picture [H, W, 3] on the CPU, compressed to a WebP with losses and unpacked again.
/// `quality` is 1 to 100. Throws Error for a side of more than 16,383 pixels, which no WebP has.
at::Tensor through_webp_bytes(const at::Tensor& picture, int quality);

}  // namespace stepop
