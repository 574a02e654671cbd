#include "iterators/vunet/pictures.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones_like.h>

namespace stepop::vunet {

at::Tensor shown(const at::Tensor& images) {
  const int64_t channels = images.size(1);
  if (channels == 3) return images;
  if (channels == 4) return images.slice(1, 0, 3);
  return images.amax(1, /*keepdim=*/true).expand({-1, 3, -1, -1});
}

at::Tensor transfer_matrix(const at::Tensor& appearances, const at::Tensor& poses,
                           const at::Tensor& images) {
  const at::Tensor margin = shown(appearances);
  const at::Tensor top = shown(poses);
  std::vector<at::Tensor> rows{
      at::cat({at::ones_like(top.slice(0, 0, 1)), top})};  // the corner is white
  for (int64_t row = 0; row < margin.size(0); ++row) {
    rows.push_back(at::cat({margin.slice(0, row, row + 1), images[row]}));
  }
  return picture_of_rows(rows);
}

at::Tensor picture_of_rows(const std::vector<at::Tensor>& rows) {
  std::vector<at::Tensor> strips;
  for (const auto& row : rows) {
    const at::Tensor images = shown(row);  // [N, 3, H, W]
    strips.push_back(images.permute({1, 2, 0, 3}).reshape({3, images.size(2), -1}));
  }
  return at::cat(strips, 1).unsqueeze(0);
}

}  // namespace stepop::vunet
