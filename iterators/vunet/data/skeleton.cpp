#include "iterators/vunet/data/skeleton.h"

#include <array>

#include "iterators/vunet/data/stickman.h"

namespace stepop::vunet {
namespace {

// round(sin(degrees) * 16384) for 0 to 90 degrees.
constexpr std::array<int64_t, 91> kSines = {
    0,     286,   572,   857,   1143,  1428,  1713,  1997,  2280,  2563,  2845,  3126,  3406,
    3686,  3964,  4240,  4516,  4790,  5063,  5334,  5604,  5872,  6138,  6402,  6664,  6924,
    7182,  7438,  7692,  7943,  8192,  8438,  8682,  8923,  9162,  9397,  9630,  9860,  10087,
    10311, 10531, 10749, 10963, 11174, 11381, 11585, 11786, 11982, 12176, 12365, 12551, 12733,
    12911, 13085, 13255, 13421, 13583, 13741, 13894, 14044, 14189, 14330, 14466, 14598, 14726,
    14849, 14968, 15082, 15191, 15296, 15396, 15491, 15582, 15668, 15749, 15826, 15897, 15964,
    16026, 16083, 16135, 16182, 16225, 16262, 16294, 16322, 16344, 16362, 16374, 16382, 16384};

// Proportions in thousandths of the height; heads are a little large, for small images.
constexpr int64_t kTrunk = 300;
constexpr int64_t kHeadRise = 108;  // from the neck to the middle of the head
constexpr int64_t kHeadRadius = 72;
constexpr int64_t kShoulder = 100;  // half the distance between the shoulders
constexpr int64_t kHip = 58;
constexpr int64_t kUpperArm = 160;
constexpr int64_t kForearm = 145;
constexpr int64_t kThigh = 240;
constexpr int64_t kShin = 225;
constexpr int64_t kFoot = 70;

int64_t scale(int64_t length, int64_t sine_or_cosine) { return length * sine_or_cosine / 16384; }

/// Places the two joints after `start`.
void place_limb(Skeleton& skeleton, size_t start, const Limb& limb, int64_t upper, int64_t lower) {
  auto& joints = skeleton.joints;
  joints[start + 1] = joints[start] + step(upper * limb.upper_length / 100, limb.upper_angle);
  joints[start + 2] = joints[start + 1] + step(lower * limb.lower_length / 100, limb.lower_angle);
}

/// Places nose, eyes and ears around an upright head that looks to `head_turn`, then tilts them.
void place_face(Skeleton& skeleton, const Pose& pose, int64_t tilt) {
  struct Feature {
    size_t joint;
    int64_t angle;   // around the head, from its viewing direction
    int64_t radius;  // percent of the head's radius
    int64_t rise;    // percent of the head's radius
  };
  constexpr std::array<Feature, 5> kFeatures = {
      {{0, 0, 95, -15}, {14, -28, 85, 15}, {15, 28, 85, 15}, {16, -90, 95, 0}, {17, 90, 95, 0}}};
  const int64_t radius = skeleton.head_radius;
  for (const Feature& feature : kFeatures) {
    const int64_t angle = pose.head_turn + feature.angle;
    const int64_t right = scale(radius * feature.radius / 100, sine(angle));
    const int64_t down = -radius * feature.rise / 100;
    skeleton.joints[feature.joint] =
        skeleton.head + Point{scale(right, cosine(tilt)) - scale(down, sine(tilt)),
                              scale(right, sine(tilt)) + scale(down, cosine(tilt))};
    skeleton.is_hidden[feature.joint] = angle < -115 || angle > 115;
  }
}

}  // namespace

int64_t sine(int64_t degrees) {
  const int64_t angle = (degrees % 360 + 360) % 360;
  if (angle > 180) return -sine(angle - 180);
  return kSines[static_cast<size_t>(angle > 90 ? 180 - angle : angle)];
}

Point step(int64_t length, int64_t angle) {
  return {scale(length, sine(angle)), scale(length, cosine(angle))};
}

Skeleton skeleton_of(const Pose& pose) {
  Skeleton skeleton;
  const auto part = [&](int64_t amount) { return thousandths(pose.height, amount); };
  auto& joints = skeleton.joints;
  const int64_t up = 180 - pose.lean;
  joints[1] = pose.hips + step(part(kTrunk), up);
  const int64_t tilt = pose.lean + pose.head_tilt;
  skeleton.head = joints[1] + step(part(kHeadRise), 180 - tilt);
  skeleton.head_radius = part(kHeadRadius);
  place_face(skeleton, pose, tilt);

  const int64_t shoulder = scale(part(kShoulder), cosine(pose.turn));
  const int64_t hip = scale(part(kHip), cosine(pose.turn));
  for (int64_t side = 0; side < 2; ++side) {
    const auto s = static_cast<size_t>(side);
    const int64_t sign = side == 0 ? -1 : 1;
    const size_t arm = side == 0 ? 2 : 5;
    const size_t leg = side == 0 ? 8 : 11;
    joints[arm] = joints[1] + step(shoulder * sign, 90 - pose.lean);
    joints[leg] = pose.hips + step(hip * sign, 90 - pose.lean / 2);
    place_limb(skeleton, arm, pose.arms[s], part(kUpperArm), part(kForearm));
    place_limb(skeleton, leg, pose.legs[s], part(kThigh), part(kShin));
    const int64_t foot = part(kFoot);
    skeleton.toes[s] = joints[leg + 2] + Point{scale(foot * sign * 45 / 100, cosine(pose.turn)) +
                                                   scale(foot * 95 / 100, sine(pose.turn)),
                                               foot * 35 / 100};
  }
  return skeleton;
}

Joints joints_of(const Pose& pose, int64_t size) {
  const Skeleton skeleton = skeleton_of(pose);
  Joints joints;
  for (size_t i = 0; i < joints.size(); ++i) {
    if (skeleton.is_hidden[i]) continue;
    // The result is exact: a product of small integers, divided by a power of two.
    joints[i] = {static_cast<double>(skeleton.joints[i].x * size) / 65536,
                 static_cast<double>(skeleton.joints[i].y * size) / 65536};
  }
  return joints;
}

}  // namespace stepop::vunet
