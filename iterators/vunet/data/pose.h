#pragma once

#include <array>
#include <cstdint>

#include "iterators/vunet/data/canvas.h"

namespace stepop::vunet {

/// An arm or a leg as it is seen in the image.
struct Limb {
  int64_t upper_angle = 0;  ///< Degrees from straight down, counted to the image's right.
  int64_t lower_angle = 0;
  int64_t upper_length = 100;  ///< Percent; less when it points to us or away.
  int64_t lower_length = 100;

  bool operator==(const Limb&) const = default;
};

/// What a person does and where. Angles are whole degrees, lengths 65536ths of the image's side.
struct Pose {
  Point hips = {32768, 36000};  ///< The middle of both.
  int64_t height = 52000;       ///< Of the person who stands upright.
  int64_t lean = 0;             ///< Of the trunk, to the image's right.
  int64_t turn = 0;             ///< Of the trunk; positive: the person looks to the image's right.
  int64_t head_turn = 0;
  int64_t head_tilt = 0;
  std::array<Limb, 2> arms = {};  ///< Of the person's right (left in the image) and left.
  std::array<Limb, 2> legs = {};

  bool operator==(const Pose&) const = default;
};

}  // namespace stepop::vunet
