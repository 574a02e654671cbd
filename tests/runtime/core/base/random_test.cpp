#include "runtime/core/base/random.h"

#include <doctest/doctest.h>

#include <array>
#include <set>

namespace stepop {
namespace random_test {

TEST_CASE("the numbers are SplitMix64's") {
  // The first outputs for seed 1234567, from the reference implementation by Sebastiano Vigna.
  Random random(1234567);
  CHECK(random() == 6457827717110365317ULL);
  CHECK(random() == 3203168211198807973ULL);
  CHECK(random() == 9817491932198370423ULL);
}

TEST_CASE("below(n) gives each number equally often") {
  Random random(1);
  std::array<int, 6> count{};
  for (int i = 0; i < 60000; ++i) ++count.at(static_cast<size_t>(random.below(6)));
  // Five standard deviations of a binomial: sqrt(60000 * 1/6 * 5/6) = 91.
  for (const int each : count) CHECK(std::abs(each - 10000) < 456);
  CHECK(random.below(1) == 0);
}

TEST_CASE("below(n) is without the bias that the remainder of a division has") {
  // n is three quarters of 2^63: a remainder of 64 random bits would fall into the lower half of
  // the range in 9 of 16 cases.
  constexpr int64_t kRange = (int64_t{1} << 62) + (int64_t{1} << 61);
  Random random(1);
  int lower = 0;
  for (int i = 0; i < 100000; ++i) lower += random.below(kRange) < kRange / 2 ? 1 : 0;
  CHECK(std::abs(lower - 50000) < 791);  // five standard deviations
}

TEST_CASE("uniform numbers are in [0, 1), normal ones have mean 0 and variance 1") {
  Random random(2);
  double sum = 0, squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = random.uniform();
    REQUIRE((u >= 0 && u < 1));
    const double n = random.normal();
    sum += n;
    squares += n * n;
  }
  CHECK(std::abs(sum / 100000) < 0.016);  // five standard errors
  CHECK(std::abs(squares / 100000 - 1) < 0.0224);
}

TEST_CASE("a mixed seed depends on every part and on their order") {
  const std::set<uint64_t> seeds = {mix_seed({1, 2}),    mix_seed({2, 1}), mix_seed({1}),
                                    mix_seed({1, 2, 0}), mix_seed({1, 3}), mix_seed({})};
  CHECK(seeds.size() == 6);
  CHECK(seed_of("train") != seed_of("validation"));
}

}  // namespace random_test
}  // namespace stepop
