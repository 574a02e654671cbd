#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/pictures/canvas.h"

namespace stepop {

/// Round numbers in [low, high], at most `most` of them at equal distances, for an axis.
std::vector<double> round_ticks(double low, double high, int most);

/// [low, high], or, when that is too narrow for `parts` of equal width, a range around it: of width
/// 1 as in numpy, and wide enough for numbers so large that those that are 1 apart are the same.
std::pair<double, double> range_with_room(double low, double high, int64_t parts);

/// What one side of a plot shows: the numbers from `low` to `high`, `low` below `high`.
struct Axis {
  std::string name = {};
  double low = 0;
  double high = 1;
  std::vector<double> ticks = {};
  std::vector<std::string> texts = {};  ///< Of the ticks.

  /// From 0 to 1 within the range.
  double share(double value) const { return (value - low) / (high - low); }
};

/// Round numbers of any kind.
Axis number_axis(std::string name, double low, double high);
/// Whole numbers from 0 on.
Axis count_axis(std::string name, int64_t most);

/// A picture with two axes, between which others draw.
class Plot {
 public:
  static constexpr int64_t kWidth = 640;
  static constexpr int64_t kHeight = 320;

  Plot(Axis across, Axis up);

  Canvas& canvas() { return canvas_; }
  int64_t left() const { return left_; }
  int64_t bottom() const { return bottom_; }
  int64_t x(double value) const;
  int64_t y(double value) const;

  using Point = std::pair<int64_t, int64_t>;  ///< x and y, in pixels.
  void dot(Point at);
  void line(Point from, Point to);
  /// A square that is seen on a line.
  void mark(Point at);

  /// The numbers across, and a note at the top right; to be called last.
  std::string png(const std::string& note = "");

 private:
  Axis across_;
  Axis up_;
  int64_t left_;
  int64_t bottom_;
  Canvas canvas_;
};

}  // namespace stepop
