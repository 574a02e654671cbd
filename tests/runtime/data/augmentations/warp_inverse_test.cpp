// Keypoints and boxes in warps: against the lens's own equation, and against the pixels of the map.
#include "runtime/data/augmentations/warp_inverse.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/data/augmentations/geometry.h"

namespace stepop {
namespace warp_inverse_test {

constexpr int64_t kHeight = 96;
constexpr int64_t kWidth = 128;

PixelPosition random_place(Random& random, int64_t height, int64_t width) {
  return {random.uniform() * static_cast<double>(width - 1),
          random.uniform() * static_cast<double>(height - 1)};
}

/// Where camera_map's lens shows a place: r (1 + k r^2 + k r^4) grows with r, so halves find r.
PixelPosition through_lens(PixelPosition place, double k) {
  const double x = place.x / kWidth - 0.5;
  const double y = place.y / kHeight - 0.5;
  const double wanted = std::hypot(x, y);
  double low = 0;
  double high = 2;
  for (int i = 0; i < 60; ++i) {
    const double r = (low + high) / 2;
    (r * (1 + k * r * r + k * std::pow(r, 4)) < wanted ? low : high) = r;
  }
  const double factor = wanted == 0 ? 1 : low / wanted;
  return {(x * factor + 0.5) * kWidth, (y * factor + 0.5) * kHeight};
}

bool is_within(PixelPosition place, int64_t height, int64_t width) {
  return place.x >= 0 && place.y >= 0 && place.x <= static_cast<double>(width - 1) &&
         place.y <= static_cast<double>(height - 1);
}

double distance(PixelPosition a, PixelPosition b) { return std::hypot(a.x - b.x, a.y - b.y); }

TEST_CASE("a keypoint is where the lens shows it, and beyond the border as far as the border") {
  for (const double k : {-0.05, -0.02, 0.05, 0.3}) {
    CAPTURE(k);
    const WarpInverse inverse(camera_map(kHeight, kWidth, k));
    Random random(3);
    int beyond = 0;
    for (int i = 0; i < 1500; ++i) {
      const PixelPosition place = random_place(random, kHeight, kWidth);
      const PixelPosition right = through_lens(place, k);
      const PixelPosition ours = inverse.nearest(place);
      const bool is_shown = is_within(right, kHeight, kWidth);
      beyond += is_shown ? 0 : 1;
      CAPTURE(place.x);
      CAPTURE(place.y);
      CAPTURE(ours.x);
      CAPTURE(ours.y);
      CHECK(distance(ours, right) < (is_shown ? 0.01 : 0.6));
    }
    CHECK((beyond > 0) == (k < 0));
  }
  const WarpInverse inverse(camera_map(kHeight, kWidth, -0.05));
  const PixelPosition left = inverse.nearest({0, 48});
  CHECK(std::abs(left.x - -1.06) < 0.1);
  CHECK(std::abs(left.y - 48) < 0.01);
  CHECK(distance(inverse.nearest({127, 95}), {129.6, 97}) < 0.6);
  CHECK(distance(inverse.nearest({-40, 48}), {-41, 48}) < 0.1);
}

/// Whether the four pixels around `ours` come from places around `place`: where the map shrinks the
/// image, no pixel shows it to half a pixel.
bool is_between(const WarpMap& map, PixelPosition ours, PixelPosition place) {
  const auto x = static_cast<int64_t>(std::floor(ours.x));
  const auto y = static_cast<int64_t>(std::floor(ours.y));
  if (x < 0 || y < 0 || x + 1 >= map.size(1) || y + 1 >= map.size(0)) return false;
  const at::Tensor corners = map.slice(0, y, y + 2).slice(1, x, x + 2).reshape({4, 2});
  const at::Tensor least = corners.amin(0);
  const at::Tensor most = corners.amax(0);
  return least[0].item<double>() <= place.x && place.x <= most[0].item<double>() &&
         least[1].item<double>() <= place.y && place.y <= most[1].item<double>();
}

TEST_CASE("where elastic waves fold an image, a keypoint is one of the pixels that show it") {
  constexpr std::array<std::array<int64_t, 2>, 3> kSizes{{{64, 40}, {kHeight, kWidth}, {1, 30}}};
  for (const auto& [height, width] : kSizes) {
    int folds = 0;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      Random random(seed);
      const WarpMap map = elastic_map(height, width, 300, 8, random);
      const auto from = map.accessor<float, 3>();
      const double farthest = (map - identity_map(height, width)).norm(2, 2).max().item<double>();
      const WarpInverse inverse(map);
      for (int i = 0; i < 30; ++i) {
        const PixelPosition place = random_place(random, height, width);
        const PixelPosition ours = inverse.nearest(place);
        CAPTURE(seed);
        CAPTURE(place.x);
        CAPTURE(place.y);
        CHECK(distance(ours, place) <= farthest + 0.01);
        folds += inverse.all(place).size() > 1 ? 1 : 0;
        // The pixels that show it, as a mask shows it.
        double nearest = std::numeric_limits<double>::infinity();
        double to_ours = std::numeric_limits<double>::infinity();
        for (int64_t y = 0; y < height; ++y) {
          for (int64_t x = 0; x < width; ++x) {
            if (std::abs(from[y][x][0] - place.x) > 0.5) continue;
            if (std::abs(from[y][x][1] - place.y) > 0.5) continue;
            const PixelPosition pixel{static_cast<double>(x), static_cast<double>(y)};
            nearest = std::min(nearest, distance(pixel, place));
            to_ours = std::min(to_ours, distance(pixel, ours));
          }
        }
        if (std::isinf(nearest)) continue;  // no pixel shows it
        CHECK((to_ours < 1.5 || is_between(map, ours, place)));
        CHECK(distance(ours, place) < nearest + 1.5);
      }
    }
    CHECK(folds > 0);
  }
}

TEST_CASE("in a warp that folds, a box encloses the pixels of its mask") {
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const double side = 4 + 20 * random.uniform();
    const double x = std::floor(16 + random.uniform() * (kWidth - 32 - side));
    const double y = std::floor(16 + random.uniform() * (kHeight - 32 - side));
    const auto size = static_cast<int64_t>(side);
    const auto left = static_cast<int64_t>(x);
    const auto top = static_cast<int64_t>(y);
    at::Tensor mask = at::zeros({kHeight, kWidth}, at::kLong);
    mask.slice(0, top, top + size).slice(1, left, left + size).fill_(1);
    at::Tensor boxes = at::tensor({static_cast<float>(left), static_cast<float>(top),
                                   static_cast<float>(left + size), static_cast<float>(top + size)})
                           .reshape({1, 4});
    Scene scene;
    scene.masks = {{"mask", &mask}};
    scene.boxes = {{"boxes", &boxes}};
    transform(scene, elastic_map(kHeight, kWidth, 300, 8, random));
    const at::Tensor pixels = mask.nonzero();
    if (pixels.size(0) == 0) continue;
    const at::Tensor least = std::get<0>(pixels.min(0));
    const at::Tensor most = std::get<0>(pixels.max(0)) + 1;
    ++compared;
    CAPTURE(seed);
    for (const int64_t axis : {0, 1}) {
      CHECK(std::abs(boxes[0][axis].item<float>() - least[1 - axis].item<float>()) < 2);
      CHECK(std::abs(boxes[0][2 + axis].item<float>() - most[1 - axis].item<float>()) < 2);
    }
  }
  CHECK(compared > 50);
}

}  // namespace warp_inverse_test
}  // namespace stepop
