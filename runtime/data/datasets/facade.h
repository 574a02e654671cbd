#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/core/base/random.h"

namespace stepop {

/// The classes of the CMP Facade Database (Tylecek and Sara, 2013), in the same order.
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
  std::vector<float> floors;  ///< The edges of the floors from the top: where each floor begins and
                              ///< where the last ends.
  bool is_brick = false;      ///< Otherwise the wall is plaster; moldings show which.
};

/// Floors of windows between a cornice and a ground floor, in a random style.
Facade random_facade(Random& random);

/// Draws the map of classes, each in its colour in CMP's label images: 3 * size * size numbers in
/// [-1, 1], [3, size, size]. Edges between pixels are anti-aliased.
void draw_label_map(const Facade& facade, int64_t size, float* values);

/// Draws the map of classes as numbers: that of the last element over each pixel's centre, size *
/// size numbers, [size, size].
void draw_classes(const Facade& facade, int64_t size, int64_t* classes);

/// Draws the building in light from the upper left, in the same form. The rendering follows from
/// the label map alone: from the materials, and from each point's position within its element.
void draw_rendering(const Facade& facade, int64_t size, float* values);

/// The colour of a class in the label map, in bytes.
std::array<uint8_t, 3> label_colour(FacadeClass kind);

}  // namespace stepop
