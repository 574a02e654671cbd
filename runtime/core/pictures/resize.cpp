#include "runtime/core/pictures/resize.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>

namespace stepop {

at::Tensor resize_image(const at::Tensor& image, at::IntArrayRef size) {
  if (image.sizes().slice(1) == size) return image;
  return at::_upsample_bilinear2d_aa(image.unsqueeze(0), size, /*align_corners=*/false).squeeze(0);
}

}  // namespace stepop
