#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/core/base/random.h"

namespace stepop {

/// The classes of the CMP Facade Database (Tylecek and Sara, 2013), in its order.
enum class FacadeClass : uint8_t {
  kBackground,
  kWall,
  kWindow,
  kDoor,
  kCornice,
  kSill,
  kBalcony,
  kBlind,
  kDecoration,
  kMolding,
  kPillar,
  kShop,
};
inline constexpr size_t kFacadeClasses = 12;

/// A rectangle of one class. Lengths are shares of the image's side; (0, 0) is its upper left
/// corner.
struct FacadeElement {
  FacadeClass kind = FacadeClass::kBackground;
  float left = 0;
  float top = 0;
  float right = 1;
  float bottom = 1;
};

/// A building's front.
struct Facade {
  std::vector<FacadeElement> elements;  ///< From the back to the front; the first is the wall.
  std::vector<float> floors;  ///< Where each floor begins, from the top, and where the last ends.
  bool is_brick = false;      ///< Else plaster, which is known by its moldings.
};

/// Floors of windows between a cornice and a ground floor, in a style of the building's own.
Facade random_facade(Random& random);

/// The map of its classes, each in the colour that it has in CMP's label images: 3 * size * size
/// numbers in [-1, 1], [3, size, size]. Edges between pixels are anti-aliased.
void draw_label_map(const Facade& facade, int64_t size, float* values);

/// What it looks like in the light from the upper left, in the same form. All that is drawn follows
/// from the label map: its materials, and where in its element a point lies.
void draw_rendering(const Facade& facade, int64_t size, float* values);

/// The colour of a class in the label map, in bytes.
std::array<uint8_t, 3> label_colour(FacadeClass kind);

}  // namespace stepop
