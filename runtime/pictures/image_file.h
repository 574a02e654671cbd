#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace stepop {

/// Reads a PNG or JPEG, told apart by content: a contiguous float tensor [C, H, W] in [-1, 1],
/// where 0 is -1 and the largest stored value is 1.
///
/// C is 1 for grey and 3 for colour, palettes included, unless `channels` asks for 1 or 3: colour
/// becomes grey as 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601, as in pillow), grey is repeated.
/// 16-bit PNGs keep their precision. Alpha and transparent colours are dropped, gamma and colour
/// profiles and EXIF's orientation are not applied; CMYK is turned into RGB without a profile.
///
/// Throws Error with the path when the file cannot be read, is no such image, is damaged or ends
/// too early.
at::Tensor read_image(const std::string& path, int64_t channels = 0);

/// The same for the bytes of a file; `name` is what errors begin with.
at::Tensor decode_image(std::string_view bytes, const std::string& name, int64_t channels = 0);

/// The bytes of a PNG file with the uint8 picture [H, W, C] on the CPU, C = 1 (grey) or 3 (RGB).
/// Throws Error for other shapes and types. The compression is fast rather than small.
std::string encode_png(const at::Tensor& picture);

}  // namespace stepop
