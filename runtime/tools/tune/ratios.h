#pragma once

#include <cstddef>
#include <vector>

namespace stepop {

/// How many times faster something is than something else, of repeated measurements.
struct Ratio {
  size_t count = 0;     ///< Measurements.
  double median = 1;    ///< Above 1 is faster.
  double low = 0;       ///< The interval of the true median; from 0 to infinity where so few
  double high = 1e300;  ///< measurements allow none.

  /// Beyond the noise.
  bool is_faster() const { return low > 1; }
  bool is_slower() const { return high < 1; }
};

/// The median of `ratios` and the interval in which the true median is but for a chance of `error`,
/// whatever the distribution of the noise: by order statistics, the inverse of the sign test
/// (Conover, Practical Nonparametric Statistics, 3.2). An error of 0.05 needs 6 measurements, one
/// of 0.002 needs 10.
Ratio ratio_of(std::vector<double> ratios, double error);

}  // namespace stepop
