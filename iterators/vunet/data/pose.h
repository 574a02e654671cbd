#pragma once

#include <array>
#include <cstdint>

#include "iterators/vunet/data/canvas.h"

namespace stepop::vunet {

/// An arm or a leg as seen in the image.
struct Limb {
  int64_t upper_angle = 0;  ///< Degrees from straight down, counted to the image's right.
  int64_t lower_angle = 0;
  int64_t upper_length = 100;  ///< Percent; less if it points to the viewer or away.
  int64_t lower_length = 100;

  bool operator==(const Limb&) const = default;
};

/// A person's pose and place. Angles are whole degrees, lengths 65536ths of the image's side.
struct Pose {
  Point hips = {32768, 36000};  ///< The middle between the hips.
  int64_t height = 52000;       ///< The height of the person when upright.
  int64_t lean = 0;             ///< The trunk's lean to the image's right.
  int64_t turn = 0;             ///< The trunk's turn; positive: towards the image's right.
  int64_t head_turn = 0;
  int64_t head_tilt = 0;
  std::array<Limb, 2> arms = {};  ///< The person's right arm (left in the image) and left arm.
  std::array<Limb, 2> legs = {};

  bool operator==(const Pose&) const = default;
};

}  // namespace stepop::vunet
