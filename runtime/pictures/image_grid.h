#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// A batch of images as one near-square picture: row by row, without gaps, the places that are left
/// over at the end black.
///
/// `images` is [B, C, H, W] in [-1, 1] with C = 1 or 3, of any floating-point type on any device;
/// what lies outside is clamped. The result is uint8 [rows * H, columns * W, C] on the CPU with
/// columns = ceil(sqrt(B)). A pixel with a NaN in any channel is magenta, and a grey batch with one
/// becomes a colour picture. Throws Error that says what was found when the tensor is another.
at::Tensor image_grid(const at::Tensor& images);

/// Throws what `image_grid` would throw for such a tensor.
void check_images(const at::Tensor& images);

/// The same as the bytes of a PNG file.
std::string image_grid_png(const at::Tensor& images);

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
