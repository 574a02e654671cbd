#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace stepop::vunet {

/// Converts images of any number of channels, [B, C, H, W], to [B, 3, H, W] for display: 4 channels
/// to the first 3; 2 or more than 4, such as a heat map for each joint, to the maximum as grey.
at::Tensor shown(const at::Tensor& images);

/// Every appearance in every pose as one picture [1, 3, (R + 1) H, (P + 1) W]: the `appearances`
/// [R, C, H, W] down the left margin, the `poses` [P, C, H, W] across the top margin, and the
/// images [R, P, 3, H, W] inside.
at::Tensor transfer_matrix(const at::Tensor& appearances, const at::Tensor& poses,
                           const at::Tensor& images);

/// Rows of N images each, [N, C, H, W], below each other: [1, 3, rows H, N W].
at::Tensor picture_of_rows(const std::vector<at::Tensor>& rows);

}  // namespace stepop::vunet
