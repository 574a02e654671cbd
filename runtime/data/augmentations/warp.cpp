#include "runtime/data/augmentations/warp.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace stepop {
namespace {

/// How many standard deviations of a Gaussian count, as in OpenCV.
constexpr double kBlurDeviations = 4;

/// A Gaussian blur of `length` values as a matrix [length, length]; the border is repeated.
at::Tensor blur_matrix(int64_t length, double sigma) {
  const auto radius = static_cast<int64_t>(std::round(kBlurDeviations * sigma));
  std::vector<double> weights;
  double sum = 0;
  for (int64_t d = -radius; d <= radius; ++d) {
    const double share = static_cast<double>(d) / sigma;
    weights.push_back(std::exp(-0.5 * share * share));
    sum += weights.back();
  }
  at::Tensor matrix = at::zeros({length, length}, at::kFloat);
  auto* row = matrix.mutable_data_ptr<float>();
  for (int64_t i = 0; i < length; ++i, row += length) {
    for (int64_t d = -radius; d <= radius; ++d) {
      row[std::clamp<int64_t>(i + d, 0, length - 1)] +=
          static_cast<float>(weights[static_cast<size_t>(d + radius)] / sum);
    }
  }
  return matrix;
}

/// The map that `place_of(x, y, to)` gives; it writes two numbers for each pixel.
template <class PlaceOf>
WarpMap map_of(int64_t height, int64_t width, const PlaceOf& place_of) {
  WarpMap map = at::empty({height, width, 2}, at::kFloat);
  auto* to = map.mutable_data_ptr<float>();
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, to += 2) {
      place_of(static_cast<float>(x), static_cast<float>(y), to);
    }
  }
  return map;
}

}  // namespace

WarpMap identity_map(int64_t height, int64_t width) {
  return map_of(height, width, [](float x, float y, float* to) {
    to[0] = x;
    to[1] = y;
  });
}

at::Tensor warp(const at::Tensor& image, const WarpMap& map) {
  constexpr int64_t kBilinear = 0;
  constexpr int64_t kRepeatBorder = 1;
  // grid_sampler counts from -1 to 1 between the image's edges, half a pixel outside the centres.
  at::Tensor grid = at::empty(map.sizes(), at::kFloat);
  const float across = 2 / static_cast<float>(image.size(2));
  const float down = 2 / static_cast<float>(image.size(1));
  const auto* from = map.const_data_ptr<float>();
  auto* to = grid.mutable_data_ptr<float>();
  for (int64_t i = 0; i < map.numel(); i += 2) {
    to[i] = (from[i] + 0.5F) * across - 1;
    to[i + 1] = (from[i + 1] + 0.5F) * down - 1;
  }
  return at::grid_sampler_2d(image.unsqueeze(0), grid.unsqueeze(0), kBilinear, kRepeatBorder,
                             /*align_corners=*/false)
      .squeeze(0);
}

WarpMap elastic_map(int64_t height, int64_t width, double alpha, double sigma, Random& random) {
  const at::Generator generator = at::detail::createCPUGenerator(random());
  at::Tensor noise = at::randn({2, height, width}, generator, at::kFloat);
  noise /= noise.abs().max().clamp_min(1e-6);
  const at::Tensor moved =
      at::matmul(at::matmul(blur_matrix(height, sigma), noise), blur_matrix(width, sigma).t());
  return identity_map(height, width).add_(moved.permute({1, 2, 0}), alpha);
}

WarpMap camera_map(int64_t height, int64_t width, double k) {
  const float across = static_cast<float>(width);
  const float down = static_cast<float>(height);
  const auto strength = static_cast<float>(k);
  return map_of(height, width, [=](float column, float row, float* to) {
    const float x = column / across - 0.5F;
    const float y = row / down - 0.5F;
    const float square = x * x + y * y;
    const float factor = 1 + strength * square + strength * square * square;
    to[0] = (x * factor + 0.5F) * across;
    to[1] = (y * factor + 0.5F) * down;
  });
}

WarpMap fisheye_map(int64_t height, int64_t width, double k) {
  const float middle_x = 0.5F * static_cast<float>(width);
  const float middle_y = 0.5F * static_cast<float>(height);
  const float largest = middle_x * middle_x + middle_y * middle_y;
  const auto strength = static_cast<float>(k);
  return map_of(height, width, [=](float column, float row, float* to) {
    const float x = column - middle_x;
    const float y = row - middle_y;
    const float factor = 1 + strength * (x * x + y * y) / largest;
    to[0] = x * factor + middle_x;
    to[1] = y * factor + middle_y;
  });
}

void add_lens(Parameters& p, std::string_view name, LensMap*& lens) {
  std::string mode = "camera";
  p.add(name, mode, "camera or fisheye", one_of({"camera", "fisheye"}));
  lens = mode == "camera" ? camera_map : fisheye_map;
}

}  // namespace stepop
