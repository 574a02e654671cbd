#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "iterators/vunet/data/canvas.h"
#include "iterators/vunet/data/stickman.h"
#include "runtime/base/random.h"

namespace stepop::vunet {

enum class Hairstyle { kBald, kShort, kLong, kCap };
enum class Sleeves { kNone, kShort, kLong };
enum class Legwear { kTrousers, kShorts, kSkirt };

/// What a person looks like, in any pose.
struct Appearance {
  Colour background;
  Colour skin;
  Colour hair;  ///< Or the cap's.
  Colour shirt;
  Colour shirt_other;  ///< Of the pattern's other bands.
  Colour legwear;
  Colour shoes;
  Pattern pattern = Pattern::kPlain;
  Hairstyle hairstyle = Hairstyle::kShort;
  Sleeves sleeves = Sleeves::kShort;
  Legwear bottom = Legwear::kTrousers;
  int64_t girth = 100;  ///< Percent of the usual thickness of trunk and limbs.

  bool operator==(const Appearance&) const = default;
};

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

/// A person's colours, clothes, hair and build, each of its own.
Appearance random_appearance(Random& random);

/// Arms, legs, trunk and head within what people's joints allow, seen from the front or turned by
/// up to 60 degrees, at a height of 0.8 to 1 of the image unless arms or legs need more room;
/// all of the person is in the image, which is centred up to a tenth of its side.
Pose random_pose(Random& random);

/// The 18 joints of a person in `pose` in an image of `size` pixels a side. An ear or an eye that
/// the head hides is absent.
Joints joints_of(const Pose& pose, int64_t size);

/// A clothed person in front of a plain background: float [3, size, size] in [-1, 1], the same
/// pixels on every machine. Made for 32 pixels and more.
at::Tensor draw_figure(const Appearance& appearance, const Pose& pose, int64_t size);

/// The same, written as 3 * size * size numbers.
void draw_figure(const Appearance& appearance, const Pose& pose, int64_t size, float* values);

}  // namespace stepop::vunet
