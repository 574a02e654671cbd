#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/pictures/canvas.h"

namespace stepop {

/// At most `most` evenly spaced round numbers in [low, high], for an axis.
std::vector<double> round_ticks(double low, double high, int most);

/// [low, high], or a range around it when [low, high] is too narrow for `parts` of equal width: of
/// width 1 as in numpy, or wider for numbers so large that adding 1 does not change them.
std::pair<double, double> range_with_room(double low, double high, int64_t parts);

/// One side of a plot: the numbers from `low` to `high`, where `low` is below `high`.
struct Axis {
  std::string name = {};
  double low = 0;
  double high = 1;
  std::vector<double> ticks = {};
  std::vector<std::string> texts = {};  ///< The labels of the ticks.

  /// The position within the range, from 0 to 1.
  double share(double value) const { return (value - low) / (high - low); }
};

/// An axis of round numbers, which need not be whole.
Axis number_axis(std::string name, double low, double high);
/// An axis of whole numbers from 0 on.
Axis count_axis(std::string name, int64_t most);

/// A picture with two axes, between which other code draws.
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
  /// Draws a square that is visible on a line.
  void mark(Point at);

  /// Draws the horizontal axis' numbers, and a note at the top right; must be the last call.
  std::string png(const std::string& note = "");

 private:
  Axis across_;
  Axis up_;
  int64_t left_;
  int64_t bottom_;
  Canvas canvas_;
};

}  // namespace stepop
