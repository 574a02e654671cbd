#include "runtime/tools/tune/ratios.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "runtime/core/base/random.h"

namespace stepop {
namespace ratios_test {

TEST_CASE("the interval of a median is that of the sign test's table") {
  // Conover, Practical Nonparametric Statistics, table A3: with 16 values the 4th and the 13th
  // bound the median with an error of 2 * 0.0106.
  std::vector<double> values;
  for (int i = 1; i <= 16; ++i) values.push_back(i);
  const Ratio ratio = ratio_of(values, 0.0213);
  CHECK(ratio.count == 16);
  CHECK(ratio.low == 4);
  CHECK(ratio.high == 13);
  CHECK(ratio.median == doctest::Approx(std::sqrt(8.0 * 9.0)));
}

TEST_CASE("six measurements allow an error of 0.05, ten one of 0.002, fewer nothing") {
  const auto is_known = [](size_t count, double error) {
    return ratio_of(std::vector<double>(count, 2.0), error).is_faster();
  };
  CHECK(is_known(6, 0.05));
  CHECK_FALSE(is_known(5, 0.05));
  CHECK(is_known(10, 0.002));
  CHECK_FALSE(is_known(9, 0.002));
}

TEST_CASE("faster and slower change places with the two that are compared") {
  const std::vector<double> ratios{1.1, 1.3, 1.2, 1.4, 1.15, 1.25, 1.05, 1.35};
  std::vector<double> inverse;
  for (const double ratio : ratios) inverse.push_back(1 / ratio);
  const Ratio one = ratio_of(ratios, 0.05);
  const Ratio other = ratio_of(inverse, 0.05);
  CHECK(one.is_faster());
  CHECK(other.is_slower());
  CHECK(one.median * other.median == doctest::Approx(1));
  CHECK(one.low * other.high == doctest::Approx(1));
}

TEST_CASE("the interval holds the true median as often as it says, in noise of any shape") {
  Random random(11);
  int missed = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values;
    // Their median is 1, and they have a long tail on one side.
    for (int i = 0; i < 15; ++i) {
      const double uniform = random.uniform();
      values.push_back(uniform < 0.5 ? 0.9 + 0.2 * uniform : 1 + 50 * (uniform - 0.5));
    }
    const Ratio ratio = ratio_of(values, 0.05);
    if (ratio.low > 1 || ratio.high < 1) ++missed;
  }
  CHECK(missed < 0.05 * kTrials);
  CHECK(missed > 0.02 * kTrials);  // with 15 values the error is 0.035
}

TEST_CASE("many measurements are no trouble, and none says nothing") {
  CHECK(ratio_of(std::vector<double>(5000, 1.5), 0.05).low == 1.5);
  CHECK(ratio_of({}, 0.05).count == 0);
  CHECK_FALSE(ratio_of({}, 0.05).is_faster());
}

}  // namespace ratios_test
}  // namespace stepop
