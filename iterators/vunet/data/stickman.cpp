#include "iterators/vunet/data/stickman.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "iterators/vunet/data/canvas.h"
#include "runtime/core/base/error.h"

namespace stepop::vunet {
namespace {

/// The lines and joints that are drawn in one colour.
struct Part {
  Colour colour;
  std::vector<std::pair<size_t, size_t>> lines;
  std::vector<size_t> joints;
};

constexpr Colour kGreen = {0, 255, 0};
constexpr std::array<size_t, 5> kBody = {1, 2, 8, 11, 5};

const std::array<Part, 3>& parts() {
  static const std::array<Part, 3> all = {
      Part{{255, 0, 0}, {{2, 3}, {3, 4}, {2, 8}, {8, 9}, {9, 10}}, {2, 3, 4, 8, 9, 10}},
      Part{kGreen, {{16, 14}, {14, 0}, {0, 15}, {15, 17}, {0, 1}}, {0, 1, 14, 15, 16, 17}},
      Part{{0, 0, 255}, {{5, 6}, {6, 7}, {5, 11}, {11, 12}, {12, 13}}, {5, 6, 7, 11, 12, 13}}};
  return all;
}

int64_t to_subpixels(double pixels) {
  return static_cast<int64_t>(std::floor(pixels * static_cast<double>(kSubpixels) + 0.5));
}

std::array<Point, 18> to_points(const Joints& joints) {
  std::array<Point, 18> points;
  for (size_t i = 0; i < joints.size(); ++i) {
    const auto [x, y] = joints[i];
    constexpr auto kMost = static_cast<double>(kMostCoordinate);
    if (!(std::abs(x) <= kMost && std::abs(y) <= kMost)) {  // also catches NaN
      throw Error(fmt::format("joint {} is at ({}, {}): expected pixels, at most {} from the image",
                              i, x, y, kMostCoordinate));
    }
    points[i] = {to_subpixels(x), to_subpixels(y)};
  }
  return points;
}

double get_pixels(const Config& params, const char* key, double fallback) {
  const double pixels = params.get(key, fallback);
  if (pixels >= 0 && pixels < static_cast<double>(kMostRadius)) return pixels;
  throw params.error(key, fmt::format("expected pixels, at least 0 and less than {}, found {}",
                                      kMostRadius, pixels));
}

}  // namespace

StickmanStyle get_stickman_style(const Config& params, const StickmanStyle& defaults) {
  return {.line_width = get_pixels(params, "line_width", defaults.line_width),
          .joint_radius = get_pixels(params, "joint_radius", defaults.joint_radius)};
}

void draw_stickman(const Joints& joints, int64_t size, const StickmanStyle& style, float* values) {
  const std::array<Point, 18> points = to_points(joints);
  Canvas canvas(size, {0, 0, 0});
  std::vector<Point> body;
  for (const size_t joint : kBody) {
    if (!joints[joint].is_absent()) body.push_back(points[joint]);
  }
  canvas.fill_polygon(body, {.colour = kGreen});
  for (const Part& part : parts()) {
    for (const auto& [from, to] : part.lines) {
      if (joints[from].is_absent() || joints[to].is_absent()) continue;
      canvas.fill_capsule(points[from], points[to], to_subpixels(style.line_width / 2),
                          {.colour = part.colour});
    }
  }
  for (const Part& part : parts()) {
    for (const size_t joint : part.joints) {
      if (joints[joint].is_absent()) continue;
      canvas.fill_disc(points[joint], to_subpixels(style.joint_radius + 0.5),
                       {.colour = part.colour});
    }
  }
  canvas.write(values);
}

at::Tensor draw_stickman(const Joints& joints, int64_t size, const StickmanStyle& style) {
  at::Tensor image = at::empty({3, size, size}, at::kFloat);
  draw_stickman(joints, size, style, image.mutable_data_ptr<float>());
  return image;
}

}  // namespace stepop::vunet
