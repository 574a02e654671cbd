#pragma once

#include <ATen/core/Tensor.h>

namespace stepop {

/// Resizes an image [C, H, W] to the size [H, W]: bilinear over the whole area that a new pixel
/// covers, as in Pillow; the aspect ratio is not kept. Returns the image itself when it has that
/// size.
at::Tensor resize_image(const at::Tensor& image, at::IntArrayRef size);

/// Resizes a mask [..., H, W] of any type to the size [H, W]: a new pixel is the old one at its
/// centre, as in Pillow (NEAREST) and torch's `nearest-exact`.
at::Tensor resize_mask(const at::Tensor& mask, at::IntArrayRef size);

/// Resizes an image [C, H, W] to the size [H, W] as OpenCV's INTER_AREA does: a pixel of a smaller
/// image is the mean of the area that it covers.
at::Tensor resize_by_area(const at::Tensor& image, at::IntArrayRef size);

}  // namespace stepop
