#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace stepop::vunet {

/// Images of any number of channels, [B, C, H, W], as they are shown, [B, 3, H, W]: of 4 channels
/// the first 3, of 2 or more than 4, such as a heat map for each joint, the largest as grey.
at::Tensor shown(const at::Tensor& images);

/// Every appearance in every pose as one picture [1, 3, (R + 1) H, (P + 1) W]: the `appearances`
/// [R, C, H, W] down the left margin, the `poses` [P, C, H, W] across the upper one, and the images
/// [R, P, 3, H, W] between them.
at::Tensor transfer_matrix(const at::Tensor& appearances, const at::Tensor& poses,
                           const at::Tensor& images);

/// Rows of N images each, [N, C, H, W], below each other: [1, 3, rows H, N W].
at::Tensor picture_of_rows(const std::vector<at::Tensor>& rows);

}  // namespace stepop::vunet
