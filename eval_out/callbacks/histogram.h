#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// Numbers counted in bins of equal width.
struct Histogram {
  std::string key;  ///< What the numbers are.
  double low = 0;   ///< Where the first bin begins.
  double high = 1;  ///< Where the last bin ends.
  std::vector<int64_t> counts;
  int64_t below = 0;  ///< Numbers below the first bin,
  int64_t above = 0;  ///< and above the last one.
  int64_t non_finite = 0;

  /// Where bin `i` begins, as numpy.linspace has it; the end of the last one for i = counts.size().
  double edge(size_t i) const {
    const double width = (high - low) / static_cast<double>(counts.size());
    return i == counts.size() ? high : static_cast<double>(i) * width + low;
  }
};

/// Round numbers in [low, high], at most `most` of them at equal distances, for an axis.
std::vector<double> round_ticks(double low, double high, int most);

/// The histogram as the bytes of a PNG file, with axes.
std::string histogram_picture(const Histogram& histogram);

}  // namespace stepop
