#pragma once

#include <ATen/core/Tensor.h>

namespace stepop::pix2pix {

/// What goes in, what came out and what should have, side by side: of three batches [B, C, H, W]
/// one of images [B, 3, H, 3 W], or, where all three are grey, [B, 1, H, 3 W]. Of more than three
/// channels the first three are shown, of two the first.
at::Tensor side_by_side(const at::Tensor& input, const at::Tensor& fake, const at::Tensor& target);

}  // namespace stepop::pix2pix
