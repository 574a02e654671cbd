#include "runtime/data/augmentations/homography.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

namespace stepop {
namespace {

constexpr double kRadians = 3.14159265358979323846 / 180;

}  // namespace

PixelPosition Homography::operator()(PixelPosition place) const {
  const auto row = [&](size_t i) {
    return values[3 * i] * place.x + values[3 * i + 1] * place.y + values[3 * i + 2];
  };
  return {row(0) / row(2), row(1) / row(2)};
}

Homography Homography::operator*(const Homography& first) const {
  Homography product;
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      double sum = 0;
      for (size_t i = 0; i < 3; ++i) sum += values[3 * row + i] * first.values[3 * i + column];
      product.values[3 * row + column] = sum;
    }
  }
  return product;
}

Homography Homography::inverse() const {
  const auto& m = values;
  // The adjugate: a homography's scale has no meaning.
  return {{m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
           m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
           m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]}};
}

Homography affine(const AffineOptions& options, PixelPosition middle) {
  const double turn = options.degrees * kRadians;
  const double shear_x = options.shear_x * kRadians;
  const double shear_y = options.shear_y * kRadians;
  const double across = std::tan(shear_x) / std::cos(shear_y);
  const double s = options.scale;
  const Homography linear{{s * std::cos(turn - shear_y) / std::cos(shear_y),
                           s * (-std::cos(turn - shear_y) * across - std::sin(turn)), 0,
                           s * std::sin(turn - shear_y) / std::cos(shear_y),
                           s * (-std::sin(turn - shear_y) * across + std::cos(turn)), 0, 0, 0, 1}};
  const Homography to_middle{{1, 0, -middle.x, 0, 1, -middle.y, 0, 0, 1}};
  const Homography back{
      {1, 0, middle.x + options.shift.x, 0, 1, middle.y + options.shift.y, 0, 0, 1}};
  return back * linear * to_middle;
}

Homography homography_between(const std::array<PixelPosition, 4>& from,
                              const std::array<PixelPosition, 4>& to) {
  at::Tensor rows = at::zeros({8, 8}, at::kDouble);
  at::Tensor right = at::zeros({8}, at::kDouble);
  auto row = rows.accessor<double, 2>();
  auto number = right.accessor<double, 1>();
  for (int64_t i = 0; i < 4; ++i) {
    const auto [x, y] = from[static_cast<size_t>(i)];
    const auto [to_x, to_y] = to[static_cast<size_t>(i)];
    const std::array<double, 8> first = {x, y, 1, 0, 0, 0, -to_x * x, -to_x * y};
    const std::array<double, 8> second = {0, 0, 0, x, y, 1, -to_y * x, -to_y * y};
    for (int64_t k = 0; k < 8; ++k) {
      row[2 * i][k] = first[static_cast<size_t>(k)];
      row[2 * i + 1][k] = second[static_cast<size_t>(k)];
    }
    number[2 * i] = to_x;
    number[2 * i + 1] = to_y;
  }
  const at::Tensor solution = at::linalg_solve(rows, right);
  Homography result;
  std::copy_n(solution.const_data_ptr<double>(), 8, result.values.begin());
  return result;
}

}  // namespace stepop
