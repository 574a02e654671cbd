#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace stepop {

/// An image with lines of text below it.
struct CaptionedImage {
  at::Tensor image;  ///< Of `thumbnail`.
  std::vector<std::string> lines;
};

/// An image, float [1, C, H, W] in [-1, 1] with C = 1 or 3, in the size that it is shown in: uint8
/// [H', W', C]. One of less than 128 pixels is enlarged by a whole factor, one of more than 256
/// made smaller. A pixel with a NaN is magenta.
at::Tensor thumbnail(const at::Tensor& image);

/// Thumbnails of one size as the bytes of a PNG file: near-square, row by row. Text that is too
/// wide is cut.
std::string captioned_grid(const std::vector<CaptionedImage>& images);

}  // namespace stepop
