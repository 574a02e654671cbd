#include "runtime/tools/tune/ratios.h"

#include <algorithm>
#include <cmath>

namespace stepop {

Ratio ratio_of(std::vector<double> ratios, double error) {
  Ratio result{.count = ratios.size()};
  if (ratios.empty()) return result;
  std::ranges::sort(ratios);
  const size_t count = ratios.size();
  const size_t middle = count / 2;
  // The geometric mean, as it must not matter which of the two is the baseline.
  result.median = count % 2 == 1 ? ratios[middle] : std::sqrt(ratios[middle - 1] * ratios[middle]);
  // Binomial(count, 1/2): the chance of at most `below` of them lying below the true median.
  double term = std::pow(0.5, static_cast<double>(count));
  double chance = term;
  size_t below = 0;  // how many may be cut off on each side
  while (2 * chance <= error && 2 * below < count) {
    ++below;
    term *= static_cast<double>(count - below + 1) / static_cast<double>(below);
    chance += term;
  }
  if (below == 0) return result;
  result.low = ratios[below - 1];
  result.high = ratios[count - below];
  return result;
}

}  // namespace stepop
