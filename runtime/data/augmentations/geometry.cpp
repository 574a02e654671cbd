#include "runtime/data/augmentations/geometry.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/rot90.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "runtime/core/pictures/resize.h"
#include "runtime/data/augmentations/warp_inverse.h"

namespace stepop {
namespace {

/// The value that at::cross_entropy_loss leaves out.
constexpr double kLeftOutClass = -100;
/// A box's edge may become a curve: it is moved at so many places, and more often in a warp, whose
/// waves are shorter.
constexpr int kPlacesOfEdge = 4;
constexpr float kPixelsOfPlace = 2;

using Mover = std::function<PixelPosition(PixelPosition)>;
using MoverToMany = std::function<std::vector<PixelPosition>(PixelPosition)>;

/// Calls `change(picture, is_mask)` for each image and mask; a mask has a channel there.
template <class Change>
void change_pictures(const Scene& scene, const Change& change) {
  for (const SceneValue& image : scene.images) *image.value = change(*image.value, false);
  for (const SceneValue& mask : scene.masks) {
    const bool is_flat = mask.value->dim() == 2;
    const at::Tensor changed = change(is_flat ? mask.value->unsqueeze(0) : *mask.value, true);
    *mask.value = is_flat ? changed.squeeze(0) : changed;
  }
}

/// Moves keypoints into a changed image.
void move_keypoints(const Scene& scene, const Mover& moved) {
  for (const SceneValue& points : scene.keypoints) {
    at::Tensor result = points.value->clone(at::MemoryFormat::Contiguous);
    auto* value = result.mutable_data_ptr<float>();
    const int64_t stride = result.size(-1);
    for (auto* end = value + result.numel(); value != end; value += stride) {
      const PixelPosition place = moved({value[0], value[1]});
      value[0] = static_cast<float>(place.x);
      value[1] = static_cast<float>(place.y);
    }
    *points.value = result;
  }
}

/// Moves boxes into an image of `height` and `width`. With `pixels_of_place` an edge is moved at
/// each so many pixels at least.
void move_boxes(const Scene& scene, int64_t height, int64_t width, const MoverToMany& moved,
                float pixels_of_place = std::numeric_limits<float>::infinity()) {
  for (const SceneValue& boxes : scene.boxes) {
    at::Tensor result = boxes.value->clone(at::MemoryFormat::Contiguous);
    auto* box = result.mutable_data_ptr<float>();
    for (auto* end = box + result.numel(); box != end; box += 4) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      PixelPosition least{kInfinity, kInfinity};
      PixelPosition most{-kInfinity, -kInfinity};
      const float side = std::max({box[2] - box[0], box[3] - box[1], 0.0F});
      const int places = std::max(kPlacesOfEdge, static_cast<int>(side / pixels_of_place));
      for (int i = 0; i < 4 * places; ++i) {
        // Around the box. A box has the edges of pixels, half a pixel away from their centres.
        const int edge = i / places;
        const float part = static_cast<float>(i % places) / static_cast<float>(places);
        const float along = edge < 2 ? part : 1 - part;
        const float across = edge % 2 == 0 ? along : (edge == 1 ? 1.0F : 0.0F);
        const float down = edge % 2 == 1 ? along : (edge == 2 ? 1.0F : 0.0F);
        for (const PixelPosition& place : moved({box[0] + across * (box[2] - box[0]) - 0.5,
                                                 box[1] + down * (box[3] - box[1]) - 0.5})) {
          least = {std::min(least.x, place.x), std::min(least.y, place.y)};
          most = {std::max(most.x, place.x), std::max(most.y, place.y)};
        }
      }
      const auto cut = [](double edge, int64_t side) {
        return static_cast<float>(std::clamp(edge + 0.5, 0.0, static_cast<double>(side)));
      };
      box[0] = cut(least.x, width);
      box[1] = cut(least.y, height);
      box[2] = cut(most.x, width);
      box[3] = cut(most.y, height);
    }
    *boxes.value = result;
  }
}

/// Moves keypoints and boxes into an image of `height` and `width`.
void move_places(const Scene& scene, int64_t height, int64_t width, const Mover& moved) {
  move_keypoints(scene, moved);
  move_boxes(scene, height, width, [&](PixelPosition place) { return std::vector{moved(place)}; });
}

double mask_fill(const at::Tensor& mask) {
  return mask.scalar_type() == at::kLong ? kLeftOutClass : 0;
}

/// Samples a picture [C, H, W] at the places of a grid [H, W, 2].
at::Tensor sampled(const at::Tensor& picture, const at::Tensor& grid, bool is_mask, Fill fill) {
  constexpr int64_t kBilinear = 0;
  constexpr int64_t kNearest = 1;
  constexpr int64_t kZeros = 0;
  constexpr int64_t kRepeatBorder = 1;
  // float64 holds every class of a mask exactly.
  const auto type = is_mask ? at::kDouble : at::kFloat;
  const double outside = fill ? (is_mask ? mask_fill(picture) : *fill) : 0;
  return (at::grid_sampler_2d((picture.to(type) - outside).unsqueeze(0), grid.to(type).unsqueeze(0),
                              is_mask ? kNearest : kBilinear, fill ? kZeros : kRepeatBorder,
                              /*align_corners=*/false)
              .squeeze(0) +
          outside)
      .to(picture.scalar_type());
}

/// The rows or columns of a picture that `index` names, along `dimension`; they are cut at the
/// border.
at::Tensor selected(const at::Tensor& picture, int64_t dimension, const at::Tensor& index) {
  return picture.index_select(dimension, index.clamp(0, picture.size(dimension) - 1));
}

/// The grid of grid_sampler, from -1 to 1 between an image's edges, for places [H, W, 2] in pixels.
at::Tensor grid_of(const at::Tensor& places, int64_t height, int64_t width) {
  at::Tensor grid = places + 0.5;
  grid.select(2, 0).mul_(2.0 / static_cast<double>(width));
  grid.select(2, 1).mul_(2.0 / static_cast<double>(height));
  return grid.sub_(1);
}

}  // namespace

void add_fill(Parameters& p, Fill& fill) {
  constexpr double kBlack = -1;
  fill = kBlack;
  const Config* config = p.describe({"fill",
                                     "-1",
                                     "what images show beyond their border; repeat: the border",
                                     false,
                                     {.kind = "number", .choices = {"repeat"}}});
  if (config == nullptr) return;
  const Value* value = config->has("fill") ? config->peek("fill") : nullptr;
  if (value != nullptr && value->is_text() && value->as_text() == "repeat") {
    fill = std::nullopt;
    return;
  }
  fill = config->get("fill", kBlack);
  if (*fill >= -1 && *fill <= 1) return;
  throw config->error("fill", fmt::format("expected -1 (black) to 1, or repeat, found {}", *fill));
}

void transform(Scene& scene, const Homography& moved, Fill fill) {
  const int64_t height = scene.height();
  const int64_t width = scene.width();
  const Homography back = moved.inverse();
  at::Tensor places = at::empty({height, width, 2}, at::kDouble);
  auto* to = places.mutable_data_ptr<double>();
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, to += 2) {
      const PixelPosition from = back({static_cast<double>(x), static_cast<double>(y)});
      to[0] = from.x;
      to[1] = from.y;
    }
  }
  const at::Tensor grid = grid_of(places, height, width);
  change_pictures(scene, [&](const at::Tensor& picture, bool is_mask) {
    return sampled(picture, grid, is_mask, fill);
  });
  move_places(scene, height, width, moved);
}

void transform(Scene& scene, const WarpMap& map) {
  const int64_t height = scene.height();
  const int64_t width = scene.width();
  const at::Tensor grid = grid_of(map, height, width);
  change_pictures(scene, [&](const at::Tensor& picture, bool is_mask) {
    return is_mask ? sampled(picture, grid, is_mask, std::nullopt) : warp(picture, map);
  });
  if (scene.keypoints.empty() && scene.boxes.empty()) return;
  const WarpInverse inverse(map);
  move_keypoints(scene, [&](PixelPosition place) { return inverse.nearest(place); });
  move_boxes(
      scene, height, width, [&](PixelPosition place) { return inverse.all(place); },
      kPixelsOfPlace);
}

void mirror(Scene& scene, bool is_horizontal) {
  const auto height = static_cast<double>(scene.height());
  const auto width = static_cast<double>(scene.width());
  change_pictures(scene, [&](const at::Tensor& picture, bool) {
    return at::flip(picture, {is_horizontal ? 2 : 1});
  });
  move_places(scene, scene.height(), scene.width(), [&](PixelPosition place) {
    return is_horizontal ? PixelPosition{width - 1 - place.x, place.y}
                         : PixelPosition{place.x, height - 1 - place.y};
  });
}

void turn_quarters(Scene& scene, int64_t quarters) {
  for (int64_t i = 0; i < quarters; ++i) {
    const auto width = static_cast<double>(scene.width());
    change_pictures(scene, [&](const at::Tensor& picture, bool) {
      return at::rot90(picture, 1, {1, 2});
    });
    move_places(scene, scene.height(), scene.width(), [&](PixelPosition place) {
      return PixelPosition{place.y, width - 1 - place.x};
    });
  }
}

void resize(Scene& scene, int64_t height, int64_t width) {
  const double down = static_cast<double>(height) / static_cast<double>(scene.height());
  const double across = static_cast<double>(width) / static_cast<double>(scene.width());
  change_pictures(scene, [&](const at::Tensor& picture, bool is_mask) {
    return is_mask ? resize_mask(picture, {height, width}) : resize_image(picture, {height, width});
  });
  move_places(scene, height, width, [&](PixelPosition place) {
    return PixelPosition{(place.x + 0.5) * across - 0.5, (place.y + 0.5) * down - 0.5};
  });
}

void crop(Scene& scene, int64_t top, int64_t left, int64_t height, int64_t width, Fill fill) {
  const int64_t below = top + height - scene.height();
  const int64_t beyond = left + width - scene.width();
  change_pictures(scene, [&](const at::Tensor& picture, bool is_mask) {
    if (!fill) {
      return selected(selected(picture, 1, at::arange(top, top + height)), 2,
                      at::arange(left, left + width));
    }
    // A padding below 0 cuts.
    return at::constant_pad_nd(picture, {-left, beyond, -top, below},
                               is_mask ? mask_fill(picture) : *fill);
  });
  move_places(scene, height, width, [&](PixelPosition place) {
    return PixelPosition{place.x - static_cast<double>(left), place.y - static_cast<double>(top)};
  });
}

}  // namespace stepop
