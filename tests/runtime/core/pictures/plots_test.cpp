#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <limits>
#include <numeric>

#include "runtime/core/pictures/axes.h"
#include "runtime/core/pictures/curve.h"
#include "runtime/core/pictures/histogram.h"
#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace plots_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

/// Dark pixels of the middle of viridis, in which lines and bars are drawn, between the axes.
int64_t drawn(const std::string& png) {
  const at::Tensor image = decode_image(png, "the picture", 3);
  const Colour shade = viridis(0.4);
  const auto is = [&](int64_t channel, uint8_t value) {
    return image[channel].sub(2.0 * value / 255 - 1).abs().lt(1e-3);
  };
  return is(0, shade.red)
      .logical_and(is(1, shade.green))
      .logical_and(is(2, shade.blue))
      .sum()
      .item()
      .toLong();
}

TEST_CASE("an axis has round numbers") {
  CHECK((round_ticks(0, 100, 6) == std::vector<double>{0, 20, 40, 60, 80, 100}));
  CHECK((round_ticks(-1.7, 1.9, 7) == std::vector<double>{-1, 0, 1}));
  CHECK((round_ticks(0, 1, 6).size() == 6));
  CHECK(round_ticks(1e18, 1e18 + 256, 9).size() <= 9);
  CHECK(round_ticks(-1e308, 1e308, 9).size() <= 9);
  CHECK((count_axis("count", 3).texts == std::vector<std::string>{"0", "1", "2", "3"}));
  CHECK((count_axis("count", 0).texts == std::vector<std::string>{"0", "1"}));
}

TEST_CASE("all elements of a tensor are counted, as numpy.histogram counts them") {
  // numpy.histogram(numpy.arange(10) ** 2, 4)
  const Histogram squares = histogram_of(at::arange(10).square().reshape({2, 5}), 4);
  CHECK((squares.counts == std::vector<int64_t>{5, 2, 1, 2}));
  CHECK(squares.low == 0);
  CHECK(squares.high == 81);
  CHECK(squares.sum == 285);
  CHECK(squares.sum_of_squares == 15333);

  const Histogram large = histogram_of(at::randn({1000}, at::kHalf));
  CHECK(large.counts.size() == 64);
  CHECK(sum(large.counts) == 1000);
  CHECK(large.counts.back() > 0);  // the last bin has both of its ends
}

TEST_CASE("numbers that are equal, infinite or none at all have bins too") {
  const Histogram equal = histogram_of(at::full({7}, 3.0), 4);
  CHECK(equal.low == 2.5);
  CHECK(equal.high == 3.5);
  CHECK((equal.counts == std::vector<int64_t>{0, 0, 7, 0}));

  const Histogram broken = histogram_of(at::tensor({1.0, kNan, kInfinity, -kInfinity, 2.0}), 2);
  CHECK((broken.counts == std::vector<int64_t>{1, 1}));
  CHECK(broken.non_finite == 3);

  const Histogram none = histogram_of(at::zeros({0}), 2);
  CHECK((none.counts == std::vector<int64_t>{0, 0}));
  CHECK(drawn(histogram_picture(none)) == 0);

  const Histogram wide = histogram_of(at::tensor({-1.7e308, 0.0, 1.7e308}, at::kDouble), 3);
  CHECK((wide.counts == std::vector<int64_t>{0, 1, 0}));
  CHECK(wide.below + wide.above == 2);
  CHECK_FALSE(histogram_picture(wide).empty());
}

TEST_CASE("a curve is a line through its points, which those that are not finite break") {
  const auto line = [](const at::Tensor& y) {
    return drawn(curve_picture({at::arange(y.size(0)), y, "recall", "precision"}));
  };
  const int64_t whole = line(at::tensor({0.0, 1.0, 0.5, 0.2, 0.0}));
  CHECK(whole > Plot::kWidth);
  CHECK(line(at::tensor({0.0, 1.0, kNan, 0.2, 0.0})) < whole * 2 / 3);
  CHECK(line(at::tensor({5.0})) == 9);  // one dot
  CHECK(line(at::tensor({kNan, kInfinity})) == 0);
  CHECK(line(at::tensor({3, 3, 3})) > Plot::kWidth);  // in the middle
  const int64_t steep = line(at::tensor({-1.0, 1.0}));
  CHECK(steep > Plot::kHeight);
  CHECK(line(at::tensor({-1.7e308, 1.7e308}, at::kDouble)) == steep);
}

}  // namespace plots_test
}  // namespace stepop
