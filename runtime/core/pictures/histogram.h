#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// Numbers counted in bins of equal width; NaN and infinity are only counted in `non_finite`.
struct Histogram {
  std::string key = {};  ///< The name of the numbers.
  double low = 0;        ///< The start of the first bin.
  double high = 1;       ///< The end of the last bin.
  std::vector<int64_t> counts = {};
  int64_t below = 0;  ///< Numbers below the first bin.
  int64_t above = 0;  ///< Numbers above the last bin.
  int64_t non_finite = 0;
  double sum = 0;             ///< The sum of the numbers in the bins.
  double sum_of_squares = 0;  ///< The sum of their squares.

  /// The start of bin `i`, as in numpy.linspace; the end of the last bin for i = counts.size().
  double edge(size_t i) const {
    const double width = (high - low) / static_cast<double>(counts.size());
    return i == counts.size() ? high : static_cast<double>(i) * width + low;
  }

  /// Counts `numbers`, of any real type, shape and device, in the existing bins; the last bin
  /// includes both of its ends, as in numpy.
  void add(const at::Tensor& numbers);
};

/// The histogram of all `numbers`, from the smallest to the largest finite number. If these are
/// almost equal, a range around them; if there are none, from 0 to 1.
Histogram histogram_of(const at::Tensor& numbers, int64_t bins = 64);

/// The histogram as the bytes of a PNG file, with axes.
std::string histogram_picture(const Histogram& histogram);

}  // namespace stepop
