#pragma once

#include <ATen/core/Tensor.h>

namespace stepop::pix2pix {

/// Input, output and target side by side: joins three batches [B, C, H, W] into images
/// [B, 3, H, 3 W], or [B, 1, H, 3 W] if all three are grey. With more than three channels, the
/// first three are shown; with two, the first.
at::Tensor side_by_side(const at::Tensor& input, const at::Tensor& fake, const at::Tensor& target);

}  // namespace stepop::pix2pix
