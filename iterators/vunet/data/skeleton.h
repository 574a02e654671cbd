#pragma once

#include <array>
#include <cstdint>

#include "iterators/vunet/data/pose.h"

namespace stepop::vunet {

/// The positions of the parts of a posed person, in 65536ths of the image's side.
struct Skeleton {
  std::array<Point, 18> joints;         ///< As in Joints, including hidden joints.
  std::array<bool, 18> is_hidden = {};  ///< True for ears and eyes behind the head.
  std::array<Point, 2> toes;            ///< The toes of the right and the left foot.
  Point head;                           ///< The middle of the head.
  int64_t head_radius = 0;
};

Skeleton skeleton_of(const Pose& pose);

/// `amount` thousandths of `length`.
inline int64_t thousandths(int64_t length, int64_t amount) { return length * amount / 1000; }

/// A step of `length` at `angle` degrees from straight down, counted to the image's right.
Point step(int64_t length, int64_t angle);

/// The sine of whole degrees in 16384ths, from a table, since libm's sine differs between machines.
int64_t sine(int64_t degrees);
inline int64_t cosine(int64_t degrees) { return sine(degrees + 90); }

inline Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
inline Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
/// The point at `part` of `whole` on the way from `a` to `b`.
inline Point between(Point a, Point b, int64_t part, int64_t whole) {
  return {a.x + (b.x - a.x) * part / whole, a.y + (b.y - a.y) * part / whole};
}

}  // namespace stepop::vunet
