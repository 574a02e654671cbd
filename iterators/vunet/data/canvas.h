#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepop::vunet {

/// An RGB colour in bytes.
struct Colour {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;

  bool operator==(const Colour&) const = default;
};

/// A point or a distance in 16ths of a pixel: x to the right, y down; (0, 0) is the upper left
/// corner of the first pixel, whose centre is (8, 8).
struct Point {
  int64_t x = 0;
  int64_t y = 0;

  bool operator==(const Point&) const = default;
};

inline constexpr int64_t kSubpixels = 16;

/// The largest distance in pixels of a point from a canvas's first pixel, in each direction. Radii
/// are at most kMostRadius pixels. With these limits, no sum of squares overflows.
inline constexpr int64_t kMostCoordinate = 1 << 13;
inline constexpr int64_t kMostRadius = 1 << 8;

enum class Pattern { kPlain, kAcross, kAlong, kChecks };

/// The fill of a shape: one colour, or two in turn. Stripes lie across or along the line from
/// `from` to `to`; `bands` stripes together have the length of the line.
struct Paint {
  Colour colour = {};
  Colour other = {};
  Pattern pattern = Pattern::kPlain;
  Point from = {};
  Point to = {};
  int64_t bands = 1;

  /// The colour at a point.
  Colour at(Point point) const;
};

/// A square picture on which shapes are painted, one over the other. A pixel is painted when its
/// centre lies in the shape or on its edge, without anti-aliasing. All arithmetic is in integers:
/// the same calls give the same pixels on every machine.
class Canvas {
 public:
  Canvas(int64_t size, Colour background);

  /// Fills all points within `radius` of the line from `from` to `to`: a line with round ends.
  void fill_capsule(Point from, Point to, int64_t radius, const Paint& paint);
  void fill_disc(Point centre, int64_t radius, const Paint& paint) {
    fill_capsule(centre, centre, radius, paint);
  }
  /// Fills a polygon of three or more corners (else nothing); overlaps are holes (even-odd rule).
  void fill_polygon(std::span<const Point> corners, const Paint& paint);

  /// Writes the picture as 3 * size * size numbers in [-1, 1], [3, size, size].
  void write(float* values) const;

  int64_t size() const { return size_; }
  Colour pixel(int64_t column, int64_t row) const {
    return pixels_[static_cast<size_t>(row * size_ + column)];
  }

 private:
  void paint(int64_t column, int64_t row, const Paint& paint);

  int64_t size_;
  std::vector<Colour> pixels_;
};

}  // namespace stepop::vunet
