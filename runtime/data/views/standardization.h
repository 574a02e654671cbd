#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/data/dataset.h"

namespace stepop {

/// The mean and standard deviation of the numbers under a key: applies (x - mean) / std, as the
/// dataset Standardized does, and undoes it.
class Standardization {
 public:
  Standardization() = default;
  /// Each list has one number for values of any shape, F numbers for vectors [F], or C numbers for
  /// other values [C, ...], such as images. Each `std` is above 0.
  /// `rest` is what a whole mean beyond 2^53 has beside `mean`, which has 53 bits of it; empty: 0.
  Standardization(std::vector<double> mean, std::vector<double> std, std::vector<double> rest = {});

  /// The standardization that the Standardized in the split's dataset applies to `key`: from the
  /// config or, at the first start of a run, fitted now. For an iterator that gives its predictions
  /// in the units of the data.
  ///
  ///     y_(context.config, "train", "y")  ...  y_.undo(prediction)
  ///
  /// Throws Error when that dataset is not a Standardized, or does not standardize this key.
  Standardization(const Config& config, const std::string& split, const std::string& key);

  /// Float, of the same shape; the last `dims` dimensions are an example. Whole numbers and float64
  /// are subtracted and divided before they are rounded.
  at::Tensor apply(const at::Tensor& values, int64_t dims) const;

  /// The inverse, for a batch [B, ...] on any device: float, or float64 where float32 would round
  /// away a thousandth of a standard deviation or more, as of times in seconds since 1970.
  at::Tensor undo(const at::Tensor& batch) const;

  /// Whether float32 would round away a thousandth of a standard deviation or more.
  bool needs_float64() const { return needs_float64_; }

  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& rest() const { return rest_; }
  const std::vector<double>& std() const { return std_; }

 private:
  /// `numbers` in a shape that goes with `values`, of the type of `values`.
  at::Tensor shaped(const std::vector<double>& numbers, const at::Tensor& values,
                    int64_t dims) const;
  at::Tensor apply_to_whole(const at::Tensor& values, int64_t dims) const;

  std::vector<double> mean_;
  std::vector<double> rest_;  ///< As many; the mean is the sum of both.
  std::vector<double> std_;
  bool needs_float64_ = false;  ///< The means are large, and the deviations are small.
};

/// Fits a standardization to each of `keys`; if empty, to all keys of floats. Reads all examples,
/// by `labels` where possible, as float64 where they are stored so. NaN is left out. Throws Error
/// for a key whose values are not numbers, are infinite or are all NaN, and for more than 10,000
/// numbers in all. Equal numbers get the standard deviation 1.
std::map<std::string, Standardization> fit_standardization(Dataset& dataset,
                                                           const std::vector<std::string>& keys);

/// The parameters `mean` and `std` of a Standardized at `params`; empty when they are missing.
/// Throws UsageError unless both are maps with the same keys, to numbers or to lists of equal
/// length.
std::map<std::string, Standardization> read_standardization(const Config& params);

/// Writes the parameters `mean` and `std` into the config.
void save_standardization(const std::map<std::string, Standardization>& all, const Config& params);

}  // namespace stepop
