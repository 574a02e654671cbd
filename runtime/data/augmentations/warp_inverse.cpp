#include "runtime/data/augmentations/warp_inverse.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace stepop {
namespace {

/// How far rounding may put a place beyond its cell, in parts of the cell.
constexpr double kTolerance = 1e-4;

double square_of_distance(PixelPosition a, PixelPosition b) {
  return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
}

/// Whether a coordinate lies beyond the pixel `fixed`, the first or the last of a side.
bool is_beyond(double place, int64_t fixed, int64_t last) {
  return (fixed == 0 && place <= 0) || (fixed == last && place >= static_cast<double>(last));
}

const PixelPosition& nearest_of(const std::vector<PixelPosition>& places, PixelPosition place) {
  return *std::ranges::min_element(
      places, {}, [&](const PixelPosition& each) { return square_of_distance(each, place); });
}

}  // namespace

WarpInverse::WarpInverse(const WarpMap& map)
    : shift_(map.to(at::kDouble) - identity_map(map.size(0), map.size(1))) {
  const at::Tensor least = shift_.amin({0, 1});
  const at::Tensor most = shift_.amax({0, 1});
  least_ = {least[0].item<double>(), least[1].item<double>()};
  most_ = {most[0].item<double>(), most[1].item<double>()};
}

/// Where the pixel is taken from.
PixelPosition WarpInverse::moved(int64_t x, int64_t y) const {
  const double* shift = shift_.const_data_ptr<double>() + 2 * (y * shift_.size(1) + x);
  return {static_cast<double>(x) + shift[0], static_cast<double>(y) + shift[1]};
}

std::vector<PixelPosition> WarpInverse::all(PixelPosition place) const {
  std::vector<PixelPosition> found;
  // No pixel comes from farther away than the largest shift.
  const auto cells = [](double from, double to, int64_t side) {
    const auto within = [&](double at) {
      return static_cast<int64_t>(std::clamp(std::floor(at), 0.0, static_cast<double>(side)));
    };
    return std::pair(within(from - kTolerance), std::min(within(to + kTolerance) + 1, side));
  };
  const auto [left, right] = cells(place.x - most_.x, place.x - least_.x, shift_.size(1) - 1);
  const auto [top, bottom] = cells(place.y - most_.y, place.y - least_.y, shift_.size(0) - 1);
  for (int64_t y = top; y < bottom; ++y) {
    for (int64_t x = left; x < right; ++x) find_in_cell(x, y, place, found);
  }
  const bool is_near_border =
      left == 0 || top == 0 || right == shift_.size(1) - 1 || bottom == shift_.size(0) - 1;
  const std::vector<PixelPosition> beyond =
      found.empty() || is_near_border ? beyond_border(place) : std::vector<PixelPosition>();
  // The pixels of the border reach half a pixel beyond their centres.
  for (const PixelPosition& each : beyond) {
    if (std::min(each.x, each.y) >= -0.5 && each.x <= static_cast<double>(shift_.size(1)) - 0.5 &&
        each.y <= static_cast<double>(shift_.size(0)) - 0.5) {
      found.push_back(each);
    }
  }
  find_pixels(std::max<int64_t>(left - 1, 0), std::min(right + 1, shift_.size(1) - 1),
              std::max<int64_t>(top - 1, 0), std::min(bottom + 1, shift_.size(0) - 1), place,
              found);
  if (!found.empty()) return found;
  if (!beyond.empty()) return {nearest_of(beyond, place)};
  // Rounding left nothing: the shift of the nearest pixel.
  const auto x = std::clamp<int64_t>(std::llround(place.x), 0, shift_.size(1) - 1);
  const auto y = std::clamp<int64_t>(std::llround(place.y), 0, shift_.size(0) - 1);
  const PixelPosition from = moved(x, y);
  return {PixelPosition{place.x - from.x + static_cast<double>(x),
                        place.y - from.y + static_cast<double>(y)}};
}

/// Adds the pixels that show `place` as a mask does, to half a pixel, where the map turns back just
/// before it.
void WarpInverse::find_pixels(int64_t left, int64_t right, int64_t top, int64_t bottom,
                              PixelPosition place, std::vector<PixelPosition>& found) const {
  constexpr double kNear = 1.5 * 1.5;  // such a pixel belongs to the place that is there
  const size_t exact = found.size();
  for (int64_t y = top; y <= bottom; ++y) {
    for (int64_t x = left; x <= right; ++x) {
      const PixelPosition from = moved(x, y);
      if (std::abs(from.x - place.x) > 0.5 || std::abs(from.y - place.y) > 0.5) continue;
      const PixelPosition pixel{static_cast<double>(x), static_cast<double>(y)};
      const bool is_known = std::any_of(
          found.begin(), found.begin() + static_cast<int64_t>(exact),
          [&](const PixelPosition& each) { return square_of_distance(each, pixel) < kNear; });
      if (!is_known) found.push_back(pixel);
    }
  }
}

PixelPosition WarpInverse::nearest(PixelPosition place) const {
  return nearest_of(all(place), place);
}

/// Adds the place between the pixels (x, y) and (x + 1, y + 1) that shows `place`, by Newton's
/// method: within a cell the map is bilinear.
void WarpInverse::find_in_cell(int64_t x, int64_t y, PixelPosition place,
                               std::vector<PixelPosition>& found) const {
  const std::array<PixelPosition, 4> corners = {moved(x, y), moved(x + 1, y), moved(x, y + 1),
                                                moved(x + 1, y + 1)};
  const auto [left, right] = std::ranges::minmax(corners, {}, &PixelPosition::x);
  const auto [top, bottom] = std::ranges::minmax(corners, {}, &PixelPosition::y);
  if (place.x < left.x - kTolerance || place.x > right.x + kTolerance ||
      place.y < top.y - kTolerance || place.y > bottom.y + kTolerance) {
    return;
  }
  const auto& [a, b, c, d] = corners;
  const PixelPosition twist{d.x - b.x - c.x + a.x, d.y - b.y - c.y + a.y};
  double across = 0.5;
  double down = 0.5;
  constexpr int kSteps = 10;
  for (int i = 0; i < kSteps; ++i) {
    const double error_x =
        a.x + across * (b.x - a.x) + down * (c.x - a.x) + across * down * twist.x - place.x;
    const double error_y =
        a.y + across * (b.y - a.y) + down * (c.y - a.y) + across * down * twist.y - place.y;
    const PixelPosition by_across{b.x - a.x + down * twist.x, b.y - a.y + down * twist.y};
    const PixelPosition by_down{c.x - a.x + across * twist.x, c.y - a.y + across * twist.y};
    const double determinant = by_across.x * by_down.y - by_across.y * by_down.x;
    if (determinant == 0) return;
    across -= (error_x * by_down.y - error_y * by_down.x) / determinant;
    down -= (error_y * by_across.x - error_x * by_across.y) / determinant;
  }
  const auto is_within = [](double part) { return part >= -kTolerance && part <= 1 + kTolerance; };
  if (!is_within(across) || !is_within(down)) return;
  const double rest_x = a.x + across * (b.x - a.x) + down * (c.x - a.x) + across * down * twist.x;
  const double rest_y = a.y + across * (b.y - a.y) + down * (c.y - a.y) + across * down * twist.y;
  if (square_of_distance({rest_x, rest_y}, place) > kTolerance) return;  // it did not converge
  found.push_back({static_cast<double>(x) + across, static_cast<double>(y) + down});
}

/// The places beyond the border that come from `place`: there a shift is that of a corner, or
/// changes along the border alone.
std::vector<PixelPosition> WarpInverse::beyond_border(PixelPosition place) const {
  const int64_t last_x = shift_.size(1) - 1;
  const int64_t last_y = shift_.size(0) - 1;
  std::vector<PixelPosition> found;
  for (const int64_t x : {int64_t{0}, last_x}) {
    for (const int64_t y : {int64_t{0}, last_y}) {
      const PixelPosition from = moved(x, y);
      const PixelPosition at{place.x - from.x + static_cast<double>(x),
                             place.y - from.y + static_cast<double>(y)};
      if (is_beyond(at.x, x, last_x) && is_beyond(at.y, y, last_y)) found.push_back(at);
    }
  }
  const auto between = [&](bool is_column, int64_t fixed) {
    const int64_t length = is_column ? last_y + 1 : last_x + 1;
    const int64_t last = is_column ? last_x : last_y;
    for (int64_t i = 0; i + 1 < length; ++i) {
      const PixelPosition a = is_column ? moved(fixed, i) : moved(i, fixed);
      const PixelPosition b = is_column ? moved(fixed, i + 1) : moved(i + 1, fixed);
      const double wanted = is_column ? place.y - a.y : place.x - a.x;
      const double whole = is_column ? b.y - a.y : b.x - a.x;
      const double part = whole == 0 ? 0 : wanted / whole;
      if (!(part >= -kTolerance && part <= 1 + kTolerance)) continue;
      if (whole == 0 && wanted != 0) continue;
      const double along = static_cast<double>(i) + part;
      const double from = is_column ? a.x + part * (b.x - a.x) : a.y + part * (b.y - a.y);
      const double across = static_cast<double>(fixed) + (is_column ? place.x : place.y) - from;
      if (!is_beyond(across, fixed, last)) continue;
      found.push_back(is_column ? PixelPosition{across, along} : PixelPosition{along, across});
    }
  };
  for (const int64_t x : {int64_t{0}, last_x}) between(/*is_column=*/true, x);
  for (const int64_t y : {int64_t{0}, last_y}) between(/*is_column=*/false, y);
  return found;
}

}  // namespace stepop
