#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace stepop {

/// How a camera was held, which EXIF's tag Orientation (0x0112) says: 1, upright, to 8; see
/// `turned_upright`.
inline constexpr int kUpright = 1;

/// The orientation in the first bytes of a JPEG, PNG or WebP file; upright when they have none, or
/// one that means nothing. No image is decoded, and damaged metadata are no error.
int exif_orientation(std::string_view bytes);

/// The same of a file, of which only the beginning is read; upright when it cannot be read.
int exif_orientation_of_file(const std::string& path);

/// The image [C, H, W] as it is meant to be seen: mirrored and turned by a quarter or a half as
/// `orientation` says (Exif 3.0, 4.6.5.1.6; Pillow's ImageOps.exif_transpose).
at::Tensor turned_upright(const at::Tensor& image, int orientation);

}  // namespace stepop
