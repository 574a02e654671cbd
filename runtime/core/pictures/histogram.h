#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// Numbers counted in bins of equal width. Those that are not finite are only counted.
struct Histogram {
  std::string key = {};  ///< What the numbers are.
  double low = 0;        ///< Where the first bin begins.
  double high = 1;       ///< Where the last bin ends.
  std::vector<int64_t> counts = {};
  int64_t below = 0;  ///< Numbers below the first bin,
  int64_t above = 0;  ///< and above the last one.
  int64_t non_finite = 0;
  double sum = 0;             ///< Of the numbers in the bins,
  double sum_of_squares = 0;  ///< and of their squares.

  /// Where bin `i` begins, as numpy.linspace has it; the end of the last one for i = counts.size().
  double edge(size_t i) const {
    const double width = (high - low) / static_cast<double>(counts.size());
    return i == counts.size() ? high : static_cast<double>(i) * width + low;
  }

  /// Counts `numbers`, of any real type, shape and device, into the bins that are there; the last
  /// bin has both of its ends, as in numpy.
  void add(const at::Tensor& numbers);
};

/// All of `numbers`, from the smallest to the largest finite one, or around them where these are
/// as good as equal; from 0 to 1 where there are none.
Histogram histogram_of(const at::Tensor& numbers, int64_t bins = 64);

/// The histogram as the bytes of a PNG file, with axes.
std::string histogram_picture(const Histogram& histogram);

}  // namespace stepop
