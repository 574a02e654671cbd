#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "iterators/vunet/data/canvas.h"
#include "iterators/vunet/data/pose.h"
#include "iterators/vunet/data/stickman.h"
#include "runtime/core/base/random.h"

namespace stepop::vunet {

enum class Hairstyle { kBald, kShort, kLong, kCap };
enum class Sleeves { kNone, kShort, kLong };
enum class Legwear { kTrousers, kShorts, kSkirt };

/// The look of a person in any pose.
struct Appearance {
  Colour background;
  Colour skin;
  Colour hair;  ///< With a cap, the cap's colour.
  Colour shirt;
  Colour shirt_other;  ///< The second colour of the pattern.
  Colour legwear;
  Colour shoes;
  Pattern pattern = Pattern::kPlain;
  Hairstyle hairstyle = Hairstyle::kShort;
  Sleeves sleeves = Sleeves::kShort;
  Legwear bottom = Legwear::kTrousers;
  int64_t girth = 100;  ///< Percent of the usual thickness of trunk and limbs.

  bool operator==(const Appearance&) const = default;
};

/// Random colours, clothes, hair and build, each drawn separately.
Appearance random_appearance(Random& random);

/// A random pose of arms, legs, trunk and head that people's joints allow, seen from the front or
/// turned by up to 60 degrees. The height is 0.8 to 1 of the image unless arms or legs need more
/// room; the whole person is in the image, centred up to a tenth of the image's side.
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
