#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// A batch of images as one near-square picture: row by row, without gaps; unused places at the end
/// are black.
///
/// `images` is [B, C, H, W] in [-1, 1], of any floating-point type on any device; numbers outside
/// are clamped. With C = 4 the images are RGBA, shown over a board of grey squares. With C = 2 or
/// more than 4, each image is shown as its first 16 channels side by side in grey, and H and W
/// below are the size of all of them together. The picture has C = 1 or 3. The result is uint8
/// [rows * H, columns * W, C] on the CPU with columns = ceil(sqrt(B)). A pixel with a NaN in any
/// channel is magenta, so a grey batch with a NaN becomes a colour picture. Throws Error with the
/// tensor's shape and type when the tensor is another.
at::Tensor image_grid(const at::Tensor& images);

/// Whether `image_grid` accepts the tensor. It refuses tensors with the channels last: 1, 3 or 4
/// there, and another number in the place of the channels.
bool is_image_batch(const at::Tensor& images);

/// Throws the error of `image_grid` for such a tensor.
void check_images(const at::Tensor& images);

/// The same as the bytes of a PNG file.
std::string image_grid_png(const at::Tensor& images);

/// An image with lines of text below it.
struct CaptionedImage {
  at::Tensor image;  ///< From `thumbnail`.
  std::vector<std::string> lines;
};

inline constexpr int64_t kThumbnailSide = 128;

/// An image, float [1, C, H, W] in [-1, 1], in its displayed size: uint8 [H', W', 1 or 3], with the
/// channels of `image_grid`. If the longer side of that is below `least_side` pixels, the image is
/// enlarged by an integer factor; above 256, it is made smaller. A pixel with a NaN is magenta.
at::Tensor thumbnail(const at::Tensor& image, int64_t least_side = kThumbnailSide);

/// Thumbnails with their captions, row by row: uint8 [H', W', 3]. Each has room for the largest. A
/// row has `columns` thumbnails; with 0, the picture is near-square. Text that is wider than its
/// image and than 128 pixels is cut. Needs at least one image.
at::Tensor captioned_picture(const std::vector<CaptionedImage>& images, int64_t columns = 0);

/// The same, near-square, as the bytes of a PNG file.
std::string captioned_grid(const std::vector<CaptionedImage>& images);

}  // namespace stepop
