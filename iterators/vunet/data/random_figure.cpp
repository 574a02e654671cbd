#include <algorithm>
#include <array>

#include "iterators/vunet/data/figure.h"
#include "iterators/vunet/data/skeleton.h"

namespace stepop::vunet {
namespace {

constexpr int64_t kSide = 65536;
constexpr int64_t kRoom = kSide * 96 / 100;  // the largest extent of a person

/// Uniform in [low, high]. Do not draw twice in the arguments of one call: compilers differ in the
/// order of evaluation.
int64_t draw(Random& random, int64_t low, int64_t high) {
  return low + random.below(high - low + 1);
}

/// Like `draw`, with the middle more frequent.
int64_t draw_middle(Random& random, int64_t low, int64_t high) {
  const int64_t first = draw(random, low, high);
  return (first + draw(random, low, high)) / 2;
}

template <size_t N>
Colour draw_of(Random& random, const std::array<Colour, N>& colours) {
  return colours[static_cast<size_t>(random.below(static_cast<int64_t>(N)))];
}

/// Hue is 0 to 1535 around the circle of pure colours; saturation and value are 0 to 255.
Colour from_hue(int64_t hue, int64_t saturation, int64_t value) {
  const int64_t rest = hue % 256;
  const std::array<std::array<int64_t, 3>, 6> pure = {{{255, rest, 0},
                                                       {255 - rest, 255, 0},
                                                       {0, 255, rest},
                                                       {0, 255 - rest, 255},
                                                       {rest, 0, 255},
                                                       {255, 0, 255 - rest}}};
  const auto& channels = pure[static_cast<size_t>(hue / 256)];
  const auto mixed = [&](size_t channel) {
    const int64_t pale = 255 - (255 - channels[channel]) * saturation / 255;
    return static_cast<uint8_t>(pale * value / 255);
  };
  return {mixed(0), mixed(1), mixed(2)};
}

/// A random cloth: vivid, or sometimes white, grey or black.
Colour draw_cloth(Random& random) {
  const int64_t hue = random.below(1536);
  const int64_t saturation = random.below(5) == 0 ? draw(random, 0, 30) : draw(random, 120, 255);
  const int64_t value = draw(random, 60, 250);
  return from_hue(hue, saturation, value);
}

/// A random wall: pale or grey.
Colour draw_background(Random& random) {
  const int64_t hue = random.below(1536);
  const int64_t saturation = draw(random, 0, 110);
  const int64_t value = draw(random, 90, 245);
  return from_hue(hue, saturation, value);
}

int64_t difference(Colour a, Colour b) {
  return std::abs(a.red - b.red) + std::abs(a.green - b.green) + std::abs(a.blue - b.blue);
}

/// Cloth that differs from the two colours beside it.
Colour draw_cloth_unlike(Random& random, Colour other, Colour another) {
  Colour cloth = draw_cloth(random);
  while (difference(cloth, other) < 120 || difference(cloth, another) < 120) {
    cloth = draw_cloth(random);
  }
  return cloth;
}

/// Arms and legs of a person seen from the front. `side` is -1 for the person's right.
Limb draw_arm_in_front(Random& random, int64_t side) {
  const bool is_lowered = random.below(100) < 60;
  const int64_t out = is_lowered ? draw(random, 6, 55) : draw(random, 50, 155);
  const int64_t bend = is_lowered ? draw_middle(random, -85, 130) : draw_middle(random, -75, 85);
  return {.upper_angle = side * out,
          .lower_angle = side * (out + bend),
          .upper_length = draw(random, 82, 100),
          .lower_length = draw(random, 78, 100)};
}

Limb draw_leg_in_front(Random& random, int64_t side) {
  const int64_t out = random.below(100) < 70 ? draw(random, 0, 18) : draw(random, 15, 52);
  const int64_t bend = random.below(100) < 60 ? draw(random, 0, 10) : draw(random, 0, 55);
  return {.upper_angle = side * out,
          .lower_angle = side * (out - bend),
          .upper_length = draw(random, 84, 100),
          .lower_length = draw(random, 88, 100)};
}

/// Arms and legs of a person turned to `ahead`, 1 for the image's right: elbows bend forwards,
/// knees backwards.
Limb draw_turned_arm(Random& random, int64_t ahead) {
  const int64_t forwards = random.below(100) < 75 ? draw(random, -45, 60) : draw(random, 60, 150);
  const int64_t bend = draw_middle(random, 0, 120);
  return {.upper_angle = ahead * forwards,
          .lower_angle = ahead * (forwards + bend),
          .upper_length = draw(random, 85, 100),
          .lower_length = draw(random, 80, 100)};
}

Limb draw_turned_leg(Random& random, int64_t ahead) {
  const int64_t forwards = draw_middle(random, -32, 60);
  const int64_t bend = random.below(100) < 50 ? draw(random, 0, 15) : draw(random, 5, 75);
  return {.upper_angle = ahead * forwards,
          .lower_angle = ahead * (forwards - bend),
          .upper_length = draw(random, 88, 100),
          .lower_length = draw(random, 90, 100)};
}

/// The smallest box around a person, [left, right] x [top, bottom].
struct Box {
  explicit Box(const Pose& pose) {
    const Skeleton skeleton = skeleton_of(pose);
    for (const Point joint : skeleton.joints) add(joint, thousandths(pose.height, 62));
    for (const Point toe : skeleton.toes) add(toe, thousandths(pose.height, 38));
    add(skeleton.head, skeleton.head_radius * 130 / 100);
  }
  void add(Point point, int64_t margin) {
    left = std::min(left, point.x - margin);
    right = std::max(right, point.x + margin);
    top = std::min(top, point.y - margin);
    bottom = std::max(bottom, point.y + margin);
  }
  int64_t left = INT64_MAX;
  int64_t right = INT64_MIN;
  int64_t top = INT64_MAX;
  int64_t bottom = INT64_MIN;
};

/// A random shift that moves the middle of [low, high] near the image's middle.
int64_t draw_move(Random& random, int64_t low, int64_t high) {
  const int64_t slack = std::clamp<int64_t>((kRoom - (high - low)) / 2, 0, kSide / 10);
  return (kSide - low - high) / 2 + draw(random, -slack, slack);
}

/// Shrinks the person until it fits, and moves the whole person into the image.
void place(Random& random, Pose& pose) {
  const Box first(pose);
  const int64_t extent = std::max(first.right - first.left, first.bottom - first.top);
  if (extent > kRoom) pose.height = pose.height * kRoom / extent;
  const Box box(pose);
  pose.hips.x += draw_move(random, box.left, box.right);
  pose.hips.y += draw_move(random, box.top, box.bottom);
}

}  // namespace

Appearance random_appearance(Random& random) {
  constexpr std::array<Colour, 7> kSkins = {{{255, 224, 196},
                                             {241, 194, 155},
                                             {224, 172, 125},
                                             {198, 134, 86},
                                             {160, 104, 66},
                                             {120, 76, 48},
                                             {84, 52, 36}}};
  constexpr std::array<Colour, 8> kHairs = {{{24, 20, 20},
                                             {60, 38, 24},
                                             {104, 66, 36},
                                             {150, 84, 40},
                                             {188, 62, 24},
                                             {226, 184, 96},
                                             {160, 156, 152},
                                             {236, 230, 220}}};
  Appearance person;
  person.skin = draw_of(random, kSkins);
  person.background = draw_background(random);
  while (difference(person.background, person.skin) < 120) {
    person.background = draw_background(random);
  }
  person.hairstyle = static_cast<Hairstyle>(
      std::array<int, 10>{0, 1, 1, 1, 1, 2, 2, 2, 3, 3}[static_cast<size_t>(random.below(10))]);
  person.hair = draw_of(random, kHairs);
  if (person.hairstyle == Hairstyle::kCap) {
    person.hair = draw_cloth_unlike(random, person.skin, person.background);
  }
  person.shirt = draw_cloth_unlike(random, person.background, person.skin);
  person.shirt_other = draw_cloth_unlike(random, person.shirt, person.background);
  person.pattern =
      random.below(2) == 0 ? Pattern::kPlain : static_cast<Pattern>(draw(random, 1, 3));
  person.legwear = draw_cloth_unlike(random, person.shirt, person.background);
  person.shoes = draw_cloth_unlike(random, person.background, person.legwear);
  person.sleeves = static_cast<Sleeves>(random.below(3));
  person.bottom = static_cast<Legwear>(random.below(3));
  person.girth = draw(random, 84, 124);
  return person;
}

Pose random_pose(Random& random) {
  Pose pose;
  pose.height = draw(random, kSide * 80 / 100, kSide);
  pose.lean = draw_middle(random, -18, 18);
  const bool is_turned = random.below(100) < 45;
  pose.turn = is_turned ? draw(random, 28, 60) : draw(random, 0, 18);
  const int64_t ahead = random.below(2) == 0 ? -1 : 1;
  pose.turn *= ahead;
  pose.head_turn = std::clamp<int64_t>(pose.turn + draw_middle(random, -35, 35), -75, 75);
  pose.head_tilt = draw_middle(random, -16, 16);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t side = i == 0 ? -1 : 1;
    pose.arms[i] = is_turned ? draw_turned_arm(random, ahead) : draw_arm_in_front(random, side);
    pose.legs[i] = is_turned ? draw_turned_leg(random, ahead) : draw_leg_in_front(random, side);
  }
  for (Limb& arm : pose.arms) {  // arms lean with the trunk
    arm.upper_angle -= pose.lean;
    arm.lower_angle -= pose.lean;
  }
  place(random, pose);
  return pose;
}

}  // namespace stepop::vunet
