#pragma once

#include <ATen/core/Tensor.h>

namespace stepop {

/// Classes as a picture: int64 [B, H, W] to float [B, 3, H, W] in [-1, 1], in the colours of Pascal
/// VOC. What is below 0 does not count, and has the colour of VOC's void, a light yellow; so has
/// the class 255, and from there on the colours come again.
at::Tensor class_pictures(const at::Tensor& classes);

}  // namespace stepop
