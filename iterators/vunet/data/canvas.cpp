#include "iterators/vunet/data/canvas.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/pictures/image_file.h"

namespace stepop::vunet {
namespace {

constexpr int64_t kHalf = kSubpixels / 2;

int64_t floor_divide(int64_t a, int64_t b) {  // b > 0
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// The largest integer whose square is at most `square`.
int64_t integer_root(int64_t square) {
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(square)));
  while (root * root > square) --root;
  while ((root + 1) * (root + 1) <= square) ++root;
  return root;
}

/// The pixels, out of `size`, whose centres lie between two coordinates.
struct Range {
  Range(int64_t low, int64_t high, int64_t size)
      : first(std::max<int64_t>(0, floor_divide(low - kHalf + kSubpixels - 1, kSubpixels))),
        last(std::min(size - 1, floor_divide(high - kHalf, kSubpixels))) {}
  int64_t first;
  int64_t last;
};

int64_t centre_of(int64_t pixel) { return pixel * kSubpixels + kHalf; }

}  // namespace

Colour Paint::at(Point point) const {
  if (pattern == Pattern::kPlain) return colour;
  const int64_t dx = to.x - from.x;
  const int64_t dy = to.y - from.y;
  const int64_t square = std::max<int64_t>(1, dx * dx + dy * dy);
  const int64_t px = point.x - from.x;
  const int64_t py = point.y - from.y;
  const int64_t across = floor_divide((px * dx + py * dy) * bands, square);
  // Shifted by half a band, so that the line runs in the middle of a band.
  const int64_t along = floor_divide(2 * (px * dy - py * dx) * bands + square, 2 * square);
  switch (pattern) {
    case Pattern::kAcross:
      return across % 2 == 0 ? colour : other;
    case Pattern::kAlong:
      return along % 2 == 0 ? colour : other;
    default:
      return (across + along) % 2 == 0 ? colour : other;
  }
}

Canvas::Canvas(int64_t size, Colour background)
    : size_(size), pixels_(static_cast<size_t>(size * size), background) {}

void Canvas::paint(int64_t column, int64_t row, const Paint& paint) {
  pixels_[static_cast<size_t>(row * size_ + column)] =
      paint.at({centre_of(column), centre_of(row)});
}

void Canvas::fill_capsule(Point from, Point to, int64_t radius, const Paint& fill) {
  const Range columns(std::min(from.x, to.x) - radius, std::max(from.x, to.x) + radius, size_);
  const Range rows(std::min(from.y, to.y) - radius, std::max(from.y, to.y) + radius, size_);
  const int64_t dx = to.x - from.x;
  const int64_t dy = to.y - from.y;
  const int64_t length_square = dx * dx + dy * dy;
  const int64_t radius_square = radius * radius;
  // The distance to the line follows from |cross product| = distance * length.
  const int64_t most_cross = integer_root(radius_square * length_square);
  for (int64_t row = rows.first; row <= rows.last; ++row) {
    const int64_t py = centre_of(row) - from.y;
    for (int64_t column = columns.first; column <= columns.last; ++column) {
      const int64_t px = centre_of(column) - from.x;
      const int64_t along = px * dx + py * dy;
      bool is_inside = false;
      if (along <= 0) {
        is_inside = px * px + py * py <= radius_square;
      } else if (along >= length_square) {
        is_inside = (px - dx) * (px - dx) + (py - dy) * (py - dy) <= radius_square;
      } else {
        is_inside = std::abs(px * dy - py * dx) <= most_cross;
      }
      if (is_inside) paint(column, row, fill);
    }
  }
}

void Canvas::fill_polygon(std::span<const Point> corners, const Paint& fill) {
  if (corners.size() < 3) return;
  const auto [left, right] = std::minmax_element(corners.begin(), corners.end(),
                                                 [](Point a, Point b) { return a.x < b.x; });
  const auto [top, bottom] = std::minmax_element(corners.begin(), corners.end(),
                                                 [](Point a, Point b) { return a.y < b.y; });
  const Range columns(left->x, right->x, size_);
  const Range rows(top->y, bottom->y, size_);
  for (int64_t row = rows.first; row <= rows.last; ++row) {
    const int64_t y = centre_of(row);
    for (int64_t column = columns.first; column <= columns.last; ++column) {
      const int64_t x = centre_of(column);
      bool is_inside = false;
      bool is_on_edge = false;
      for (size_t i = 0; i < corners.size(); ++i) {
        const Point a = corners[i];
        const Point b = corners[(i + 1) % corners.size()];
        // Positive where (x, y) is to the left of a downward edge a-b.
        const int64_t side = (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x);
        is_on_edge =
            is_on_edge || (side == 0 && std::min(a.x, b.x) <= x && x <= std::max(a.x, b.x) &&
                           std::min(a.y, b.y) <= y && y <= std::max(a.y, b.y));
        if ((a.y <= y) == (b.y <= y)) continue;
        if ((side > 0) == (b.y > a.y)) is_inside = !is_inside;
      }
      if (is_inside || is_on_edge) paint(column, row, fill);
    }
  }
}

void Canvas::write(float* values) const {
  const size_t count = pixels_.size();
  for (size_t i = 0; i < count; ++i) {
    values[i] = from_byte(pixels_[i].red);
    values[count + i] = from_byte(pixels_[i].green);
    values[2 * count + i] = from_byte(pixels_[i].blue);
  }
}

}  // namespace stepop::vunet
