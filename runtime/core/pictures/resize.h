#pragma once

#include <ATen/core/Tensor.h>

namespace stepop {

/// Resizes an image [C, H, W] to the size [H, W]: bilinear over the whole area that a new pixel
/// covers, as in Pillow; the aspect ratio is not kept. Returns the image itself when it has that
/// size.
at::Tensor resize_image(const at::Tensor& image, at::IntArrayRef size);

}  // namespace stepop
