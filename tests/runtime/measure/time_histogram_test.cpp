#include "runtime/measure/time_histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/random.h"

namespace stepop {
namespace time_histogram_test {

using std::chrono::nanoseconds;

/// What the histogram of these times has as its median, in nanoseconds.
int64_t median_of(const std::vector<int64_t>& times) {
  TimeHistogram histogram;
  for (const int64_t time : times) histogram.add(nanoseconds(time));
  return histogram.median().count();
}

TEST_CASE("the median of few times") {
  CHECK(median_of({}) == 0);
  CHECK(median_of({0}) == 0);
  CHECK(median_of({-5}) == 0);
  CHECK(median_of({255}) == 255);
  CHECK(median_of({9, 1, 5}) == 5);
  CHECK(median_of({4, 1, 3, 2}) == 2);
}

TEST_CASE("every time is known to within 0.4 %, from nanoseconds to centuries") {
  for (int64_t time = 1; time < std::numeric_limits<int64_t>::max() / 3; time += time / 5 + 1) {
    CAPTURE(time);
    const auto found = static_cast<double>(median_of({time}));
    CHECK(std::abs(found / static_cast<double>(time) - 1) < 0.004);
  }
  CHECK(median_of({std::numeric_limits<int64_t>::max()}) > 0);
}

TEST_CASE("the median of many times is that of the sorted ones") {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> times(static_cast<size_t>(1 + random.below(2000)));
    for (auto& time : times) time = static_cast<int64_t>(std::exp(random.uniform() * 30));
    const double found = static_cast<double>(median_of(times));
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
    std::nth_element(times.begin(), middle, times.end());
    CAPTURE(times.size());
    CHECK(std::abs(found / static_cast<double>(*middle) - 1) < 0.004);
  }
}

}  // namespace time_histogram_test
}  // namespace stepop
