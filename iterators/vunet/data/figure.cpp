#include "iterators/vunet/data/figure.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>

#include "iterators/vunet/data/canvas.h"
#include "iterators/vunet/data/skeleton.h"

namespace stepop::vunet {
namespace {

constexpr Colour kEye = {28, 24, 30};

Colour shade(Colour colour, int64_t percent) {
  const auto part = [&](uint8_t channel) {
    return static_cast<uint8_t>(std::min<int64_t>(255, channel * percent / 100));
  };
  return {part(colour.red), part(colour.green), part(colour.blue)};
}

/// Paints the parts of one person from the farthest to the nearest.
class FigurePainter {
 public:
  FigurePainter(const Appearance& appearance, const Pose& pose, int64_t size)
      : look_(appearance),
        pose_(pose),
        skeleton_(skeleton_of(pose)),
        canvas_(size, appearance.background) {}

  const Canvas& paint() {
    const bool is_turned = pose_.turn > 20 || pose_.turn < -20;
    const size_t near = pose_.turn > 0 ? 0 : 1;
    const size_t far = 1 - near;
    if (is_turned) paint_arm(far, 82);
    if (look_.hairstyle == Hairstyle::kLong) paint_long_hair();
    paint_leg(far, is_turned ? 82 : 100);
    paint_leg(near, 100);
    paint_trunk();
    paint_head();
    if (!is_turned) paint_arm(far, 100);
    paint_arm(near, 100);
    return canvas_;
  }

 private:
  // Lengths are in thousandths of the height; `thick` also scales with the girth.
  int64_t length(int64_t amount) const { return thousandths(pose_.height, amount); }
  int64_t thick(int64_t amount) const { return length(amount) * look_.girth / 100; }
  int64_t pixels(int64_t units) const { return units * canvas_.size() * kSubpixels / 65536; }
  Point to_pixels(Point point) const { return {pixels(point.x), pixels(point.y)}; }
  /// Limited from below, so that no shape vanishes in small images.
  int64_t radius(int64_t units) const { return std::max(pixels(units), kSubpixels * 9 / 16); }

  void capsule(Point from, Point to, int64_t thickness, const Paint& paint) {
    canvas_.fill_capsule(to_pixels(from), to_pixels(to), radius(thickness), paint);
  }

  /// The shirt's pattern along the trunk, or along a sleeve from `from` to `to`.
  Paint shirt_paint(int64_t percent) const {
    return {.colour = shade(look_.shirt, percent),
            .other = shade(look_.shirt_other, percent),
            .pattern = look_.pattern,
            .from = to_pixels(skeleton_.joints[1]),
            .to = to_pixels(pose_.hips),
            .bands = 6};
  }
  Paint sleeve_paint(Point from, Point to, int64_t percent) const {
    Paint paint = shirt_paint(percent);
    paint.from = to_pixels(from);
    paint.to = to_pixels(to);
    paint.bands = 3;
    return paint;
  }

  /// The point `right` and `up` percent of the head's radius from its middle, tilted.
  Point in_head(int64_t right, int64_t up) const;

  void paint_arm(size_t side, int64_t percent);
  void paint_leg(size_t side, int64_t percent);
  void paint_trunk();
  void paint_skirt();
  void paint_long_hair();
  void paint_head();

  const Appearance& look_;
  const Pose& pose_;
  const Skeleton skeleton_;
  Canvas canvas_;
};

void FigurePainter::paint_arm(size_t side, int64_t percent) {
  const size_t first = side == 0 ? 2 : 5;
  const Point shoulder = skeleton_.joints[first];
  const Point elbow = skeleton_.joints[first + 1];
  const Point wrist = skeleton_.joints[first + 2];
  const Point hand = between(elbow, wrist, 112, 100);
  // A darker rim separates an arm from a shirt of the same colour.
  const int64_t rim = length(10);
  const bool has_sleeve = look_.sleeves != Sleeves::kNone;
  const bool is_long = look_.sleeves == Sleeves::kLong;
  const Paint skin_rim{.colour = shade(look_.skin, percent * 70 / 100)};
  const Paint sleeve_rim{.colour = shade(look_.shirt, percent * 60 / 100)};
  const Point cuff = between(shoulder, elbow, 62, 100);
  capsule(elbow, wrist, thick(23) + rim, is_long ? sleeve_rim : skin_rim);
  capsule(shoulder, elbow, thick(27) + rim, is_long ? sleeve_rim : skin_rim);
  if (has_sleeve) capsule(shoulder, is_long ? elbow : cuff, thick(33) + rim, sleeve_rim);

  const Paint skin{.colour = shade(look_.skin, percent)};
  capsule(shoulder, elbow, thick(27), skin);
  capsule(elbow, wrist, thick(23), skin);
  capsule(wrist, hand, thick(26), skin);
  if (has_sleeve) {
    capsule(shoulder, is_long ? elbow : cuff, thick(33), sleeve_paint(shoulder, elbow, percent));
  }
  if (is_long) capsule(elbow, wrist, thick(29), sleeve_paint(elbow, wrist, percent));
}

void FigurePainter::paint_leg(size_t side, int64_t percent) {
  const size_t first = side == 0 ? 8 : 11;
  const Point hip = skeleton_.joints[first];
  const Point knee = skeleton_.joints[first + 1];
  const Point ankle = skeleton_.joints[first + 2];
  const Paint skin{.colour = shade(look_.skin, percent)};
  const Paint cloth{.colour = shade(look_.legwear, percent)};
  const Paint cloth_rim{.colour = shade(look_.legwear, percent * 68 / 100)};
  const Paint skin_rim{.colour = shade(look_.skin, percent * 72 / 100)};
  const int64_t rim = length(9);
  const bool is_long = look_.bottom == Legwear::kTrousers;
  const Point hem = is_long ? knee : between(hip, knee, 78, 100);
  capsule(knee, ankle, thick(is_long ? 37 : 31) + rim, is_long ? cloth_rim : skin_rim);
  capsule(hip, knee, thick(44) + rim, is_long ? cloth_rim : skin_rim);
  if (!is_long) capsule(hip, hem, thick(50) + rim, cloth_rim);

  capsule(ankle, skeleton_.toes[side], thick(28), {.colour = shade(look_.shoes, percent)});
  capsule(hip, knee, thick(is_long ? 44 : 40), skin);
  capsule(knee, between(knee, ankle, 92, 100), thick(is_long ? 37 : 31), skin);
  if (is_long) capsule(knee, between(knee, ankle, 92, 100), thick(37), cloth);
  capsule(hip, hem, thick(is_long ? 47 : 50), cloth);
}

void FigurePainter::paint_skirt() {
  const auto& joints = skeleton_.joints;
  const Point side = step(thick(52), 90 - pose_.lean / 2);
  const Point flare = step(thick(66), 90);
  const Point right = between(joints[8], joints[9], 80, 100);
  const Point left = between(joints[11], joints[12], 80, 100);
  // The knee further to the left in the image gets the left corner, even with crossed legs.
  const Point low = right.x <= left.x ? right : left;
  const Point high = right.x <= left.x ? left : right;
  const std::array<Point, 4> corners = {to_pixels(joints[8] - side), to_pixels(low - flare),
                                        to_pixels(high + flare), to_pixels(joints[11] + side)};
  canvas_.fill_polygon(corners, {.colour = look_.legwear});
}

void FigurePainter::paint_trunk() {
  const auto& joints = skeleton_.joints;
  capsule(joints[8], joints[11], thick(50), {.colour = look_.legwear});
  if (look_.bottom == Legwear::kSkirt) paint_skirt();
  capsule(joints[1], skeleton_.head, thick(30), {.colour = shade(look_.skin, 86)});

  const auto outwards = [&](int64_t amount) { return step(thick(amount), 90 - pose_.lean); };
  const Point up = step(length(14), 180 - pose_.lean);
  const std::array<Point, 7> corners = {
      to_pixels(joints[1] + up),
      to_pixels(joints[5] + outwards(30)),
      to_pixels(between(joints[11], joints[5], 38, 100) + outwards(24)),
      to_pixels(joints[11] + outwards(46) + up),
      to_pixels(joints[8] - outwards(46) + up),
      to_pixels(between(joints[8], joints[2], 38, 100) - outwards(24)),
      to_pixels(joints[2] - outwards(30))};
  const Paint shirt = shirt_paint(100);
  canvas_.fill_polygon(corners, shirt);
  capsule(joints[2], joints[5], thick(32), shirt);
}

Point FigurePainter::in_head(int64_t right, int64_t up) const {
  const int64_t tilt = pose_.lean + pose_.head_tilt;
  return skeleton_.head + step(skeleton_.head_radius * right / 100, 90 - tilt) +
         step(skeleton_.head_radius * up / 100, 180 - tilt);
}

void FigurePainter::paint_long_hair() {
  const int64_t back = sine(pose_.head_turn);
  capsule(in_head(-25 * back / 16384, 12), in_head(-45 * back / 16384, -130),
          skeleton_.head_radius * 108 / 100, {.colour = look_.hair});
}

void FigurePainter::paint_head() {
  const int64_t radius = skeleton_.head_radius;
  const int64_t ahead = 30 * sine(pose_.head_turn) / 16384;
  const bool is_bald = look_.hairstyle == Hairstyle::kBald;
  if (!is_bald) {
    capsule(in_head(-ahead / 2, 22), in_head(-ahead, 2), radius * 104 / 100,
            {.colour = look_.hair});
  }
  capsule(in_head(ahead * 2 / 3, is_bald ? 18 : -8), in_head(ahead, -38), radius * 84 / 100,
          {.colour = look_.skin});
  if (look_.hairstyle == Hairstyle::kCap) {
    capsule(in_head(ahead * 5 / 2 - 80, 38), in_head(ahead * 5 / 2 + 80, 38), radius * 17 / 100,
            {.colour = shade(look_.hair, 72)});
  }
  for (const size_t joint : {size_t{14}, size_t{15}}) {
    const Point eye = skeleton_.joints[joint];
    if (!skeleton_.is_hidden[joint]) capsule(eye, eye, radius * 13 / 100, {.colour = kEye});
  }
}

}  // namespace

void draw_figure(const Appearance& appearance, const Pose& pose, int64_t size, float* values) {
  FigurePainter(appearance, pose, size).paint().write(values);
}

at::Tensor draw_figure(const Appearance& appearance, const Pose& pose, int64_t size) {
  at::Tensor image = at::empty({3, size, size}, at::kFloat);
  draw_figure(appearance, pose, size, image.mutable_data_ptr<float>());
  return image;
}

}  // namespace stepop::vunet
