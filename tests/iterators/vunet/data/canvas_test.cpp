#include "iterators/vunet/data/canvas.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace stepop::vunet {
namespace data_canvas_test {

constexpr Colour kBack = {0, 0, 0};
constexpr Colour kOne = {255, 0, 0};
constexpr Colour kTwo = {0, 0, 255};

constexpr Point at(int64_t x, int64_t y) { return {x * kSubpixels, y * kSubpixels}; }

/// The pixels as rows of `.` background, `1` and `2`.
std::string text_of(const Canvas& canvas) {
  std::string text;
  for (int64_t row = 0; row < canvas.size(); ++row) {
    for (int64_t column = 0; column < canvas.size(); ++column) {
      const Colour pixel = canvas.pixel(column, row);
      text += pixel == kBack ? '.' : (pixel == kOne ? '1' : '2');
    }
    text += '\n';
  }
  return text;
}

TEST_CASE("a line of two pixels has two rows, and round ends") {
  Canvas canvas(8, kBack);
  canvas.fill_capsule(at(2, 4), at(6, 4), kSubpixels, {.colour = kOne});
  CHECK(text_of(canvas) ==
        "........\n"
        "........\n"
        "........\n"
        ".111111.\n"
        ".111111.\n"
        "........\n"
        "........\n"
        "........\n");
}

TEST_CASE("a polygon that overlaps itself has a hole there, and an edge belongs to it") {
  Canvas canvas(8, kBack);
  const std::array<Point, 5> star = {
      Point{4 * 16, 8}, {7 * 16 - 8, 8 * 16}, {0, 3 * 16}, {8 * 16, 3 * 16}, {16 + 8, 8 * 16}};
  canvas.fill_polygon(star, {.colour = kOne});
  CHECK(canvas.pixel(4, 5) == kBack);
  Canvas square(8, kBack);
  const std::array<Point, 4> corners = {Point{8, 8}, {40, 8}, {40, 24}, {8, 24}};
  square.fill_polygon(corners, {.colour = kOne});
  CHECK(text_of(square).substr(0, 27) ==
        "111.....\n"
        "111.....\n"
        "........\n");
}

TEST_CASE("less than three corners are no polygon") {
  Canvas canvas(4, kBack);
  const std::array<Point, 2> corners = {at(0, 0), at(4, 4)};
  canvas.fill_polygon(corners, {.colour = kOne});
  canvas.fill_polygon({}, {.colour = kOne});
  CHECK(text_of(canvas) == "....\n....\n....\n....\n");
}

TEST_CASE("bands lie across a shape's line, along it, or both") {
  const std::array<Point, 4> all = {at(0, 0), at(6, 0), at(6, 6), at(0, 6)};
  Paint paint{.colour = kOne, .other = kTwo, .from = at(3, 0), .to = at(3, 6), .bands = 3};
  const auto drawn = [&](Pattern pattern) {
    Canvas canvas(6, kBack);
    paint.pattern = pattern;
    canvas.fill_polygon(all, paint);
    return text_of(canvas);
  };
  CHECK(drawn(Pattern::kAcross) == "111111\n111111\n222222\n222222\n111111\n111111\n");
  CHECK(drawn(Pattern::kAlong) == "221122\n221122\n221122\n221122\n221122\n221122\n");
  CHECK(drawn(Pattern::kChecks) == "221122\n221122\n112211\n112211\n221122\n221122\n");
  paint.to = paint.from;  // a line without a direction
  CHECK(drawn(Pattern::kAcross) == drawn(Pattern::kPlain));
}

}  // namespace data_canvas_test
}  // namespace stepop::vunet
