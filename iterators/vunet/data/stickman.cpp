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

constexpr Colour kRed = {255, 0, 0};
constexpr Colour kGreen = {0, 255, 0};
constexpr Colour kBlue = {0, 0, 255};

int64_t to_subpixels(double pixels) {
  return static_cast<int64_t>(std::floor(pixels * static_cast<double>(kSubpixels) + 0.5));
}

/// Where a joint is drawn.
struct DrawnJoint {
  Point point;
  bool is_absent;
};

/// The places of all joints, then those of the midpoints.
std::vector<DrawnJoint> to_places(std::span<const Joint> joints, const KeypointModel& model) {
  std::vector<Joint> all(joints.begin(), joints.end());
  for (const auto& [a, b] : model.midpoints) {
    const bool is_absent = joints[a].is_absent() || joints[b].is_absent();
    all.push_back(is_absent
                      ? Joint{}
                      : Joint{(joints[a].x + joints[b].x) / 2, (joints[a].y + joints[b].y) / 2});
  }
  std::vector<DrawnJoint> places;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [x, y] = all[i];
    constexpr auto kMost = static_cast<double>(kMostCoordinate);
    if (!(std::abs(x) <= kMost && std::abs(y) <= kMost)) {  // also catches NaN
      throw Error(fmt::format("joint {} is at ({}, {}): expected pixels, at most {} from the image",
                              i, x, y, kMostCoordinate));
    }
    places.push_back({{to_subpixels(x), to_subpixels(y)}, all[i].is_absent()});
  }
  return places;
}

}  // namespace

void declare_stickman_style(Parameters& p, StickmanStyle& style) {
  const Range pixels = at_least(0).below(kMostRadius);
  p.add("line_width", style.line_width, "of the stick figure, in pixels", pixels);
  p.add("joint_radius", style.joint_radius, "of the stick figure, in pixels", pixels);
}

void draw_stickman(std::span<const Joint> joints, int64_t size, const StickmanStyle& style,
                   const KeypointModel& model, float* values) {
  if (joints.size() != model.joints) {
    throw Error(fmt::format("expected {} joints, found {}", model.joints, joints.size()));
  }
  const std::vector<DrawnJoint> places = to_places(joints, model);
  const std::array parts = {std::pair{kRed, &model.right}, std::pair{kGreen, &model.middle},
                            std::pair{kBlue, &model.left}};
  Canvas canvas(size, {0, 0, 0});
  std::vector<Point> body;
  for (const size_t joint : model.body) {
    if (!places[joint].is_absent) body.push_back(places[joint].point);
  }
  canvas.fill_polygon(body, {.colour = kGreen});
  for (const auto& [colour, lines] : parts) {
    for (const auto& [from, to] : *lines) {
      if (places[from].is_absent || places[to].is_absent) continue;
      canvas.fill_capsule(places[from].point, places[to].point, to_subpixels(style.line_width / 2),
                          {.colour = colour});
    }
  }
  for (const auto& [colour, lines] : parts) {
    for (const auto& [from, to] : *lines) {
      for (const size_t joint : {from, to}) {
        if (places[joint].is_absent) continue;
        canvas.fill_disc(places[joint].point, to_subpixels(style.joint_radius + 0.5),
                         {.colour = colour});
      }
    }
  }
  canvas.write(values);
}

at::Tensor draw_stickman(std::span<const Joint> joints, int64_t size, const StickmanStyle& style,
                         const KeypointModel& model) {
  at::Tensor image = at::empty({3, size, size}, at::kFloat);
  draw_stickman(joints, size, style, model, image.mutable_data_ptr<float>());
  return image;
}

}  // namespace stepop::vunet
