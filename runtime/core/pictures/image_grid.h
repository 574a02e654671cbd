#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// A batch of images as one near-square picture: row by row, without gaps, the places that are left
/// over at the end black.
///
/// `images` is [B, C, H, W] in [-1, 1], of any floating-point type on any device; what lies outside
/// is clamped. With C = 4 they are RGBA, shown over a board of grey squares; with C = 2 or more
/// than 4 each becomes its channels side by side in grey, the first 16 of them; H and W are then
/// those of all. C is 1 or 3 in the picture. The result is uint8 [rows * H, columns * W, C] on the
/// CPU with columns = ceil(sqrt(B)). A pixel with a NaN in any channel is magenta, and a grey batch
/// with one becomes a colour picture. Throws Error that says what was found when the tensor is
/// another.
at::Tensor image_grid(const at::Tensor& images);

/// Whether `image_grid` shows the tensor. It refuses one that has its channels last: 1, 3 or 4
/// there, and another number where they should be.
bool is_image_batch(const at::Tensor& images);

/// Throws what `image_grid` would throw for such a tensor.
void check_images(const at::Tensor& images);

/// The same as the bytes of a PNG file.
std::string image_grid_png(const at::Tensor& images);

/// An image with lines of text below it.
struct CaptionedImage {
  at::Tensor image;  ///< Of `thumbnail`.
  std::vector<std::string> lines;
};

inline constexpr int64_t kThumbnailSide = 128;

/// An image, float [1, C, H, W] in [-1, 1] with C = 1 or 3, in the size that it is shown in: uint8
/// [H', W', C]. One whose longer side has less than `least_side` pixels is enlarged by a whole
/// factor, one of more than 256 made smaller. A pixel with a NaN is magenta.
at::Tensor thumbnail(const at::Tensor& image, int64_t least_side = kThumbnailSide);

/// Thumbnails with their captions, row by row: uint8 [H', W', 3]. Each has room for the largest.
/// `columns` of them are in a row; with 0 the picture is near-square. Text that is wider than its
/// image, or than 128 pixels, is cut. At least one image.
at::Tensor captioned_picture(const std::vector<CaptionedImage>& images, int64_t columns = 0);

/// The same, near-square, as the bytes of a PNG file.
std::string captioned_grid(const std::vector<CaptionedImage>& images);

}  // namespace stepop
