#include "runtime/core/pictures/resize.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

namespace stepop {
namespace {

/// The shares of the old pixels in each new one along a side: [to, from].
at::Tensor area_shares(int64_t from, int64_t to, bool is_smaller) {
  at::Tensor shares = at::zeros({to, from}, at::kFloat);
  auto* row = shares.mutable_data_ptr<float>();
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i, row += from) {
    const double first = static_cast<double>(i) * scale;
    const auto pixel = std::min(static_cast<int64_t>(first), from - 1);
    if (!is_smaller) {  // linear between the pixel and the next one, whose edge lies within
      const double next = static_cast<double>(i + 1) - static_cast<double>(pixel + 1) / scale;
      const auto share = static_cast<float>(next <= 0 ? 0 : next - std::floor(next));
      row[pixel] += 1 - share;
      row[std::min(pixel + 1, from - 1)] += share;
      continue;
    }
    const double last = std::min(first + scale, static_cast<double>(from));
    for (int64_t j = pixel; j < from && static_cast<double>(j) < last; ++j) {
      const double covered =
          std::min(static_cast<double>(j + 1), last) - std::max(static_cast<double>(j), first);
      row[j] = static_cast<float>(covered / (last - first));
    }
  }
  return shares;
}

}  // namespace

at::Tensor resize_image(const at::Tensor& image, at::IntArrayRef size) {
  if (image.sizes().slice(1) == size) return image;
  return at::_upsample_bilinear2d_aa(image.unsqueeze(0), size, /*align_corners=*/false).squeeze(0);
}

at::Tensor resize_mask(const at::Tensor& mask, at::IntArrayRef size) {
  at::Tensor result = mask;
  for (const int64_t dimension : {-2, -1}) {
    const int64_t from = mask.size(dimension);
    const int64_t to = size[static_cast<size_t>(dimension + 2)];
    if (from == to) continue;
    const double step = static_cast<double>(from) / static_cast<double>(to);
    const at::Tensor places = ((at::arange(to, at::kDouble) + 0.5) * step).to(at::kLong);
    result = result.index_select(dimension, places.clamp_max(from - 1));
  }
  return result;
}

at::Tensor resize_by_area(const at::Tensor& image, at::IntArrayRef size) {
  const int64_t height = image.size(1);
  const int64_t width = image.size(2);
  if (image.sizes().slice(1) == size) return image;
  if (height % size[0] == 0 && width % size[1] == 0) {
    return at::avg_pool2d(image.unsqueeze(0), {height / size[0], width / size[1]}).squeeze(0);
  }
  const bool is_smaller = height >= size[0] && width >= size[1];
  return at::matmul(at::matmul(area_shares(height, size[0], is_smaller), image),
                    area_shares(width, size[1], is_smaller).t());
}

}  // namespace stepop
