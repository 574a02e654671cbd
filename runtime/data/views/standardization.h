#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/data/dataset.h"

namespace stepop {

/// Where the numbers under a key lie and how far they spread, (x - mean) / std: what the dataset
/// Standardized does to them, and how it is undone.
class Standardization {
 public:
  Standardization() = default;
  /// Of values of any shape with one number each, of vectors [F] with F, of anything else [C, ...],
  /// such as images, with C. Each `std` is above 0.
  Standardization(std::vector<double> mean, std::vector<double> std);

  /// What the Standardized of that split's dataset does to `key`, as the config says or, at the
  /// first start of a run, as it is fitted now: for an iterator whose predictions are to have the
  /// units of the data.
  ///
  ///     y_(context.config, "train", "y")  ...  y_.undo(prediction)
  ///
  /// Throws Error when that dataset is no Standardized, or not one of this key.
  Standardization(const Config& config, const std::string& split, const std::string& key);

  /// Float, of the same shape; the last `dims` dimensions are an example.
  at::Tensor apply(const at::Tensor& values, int64_t dims) const;

  /// The opposite, for a batch [B, ...] on any device.
  at::Tensor undo(const at::Tensor& batch) const;

  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& std() const { return std_; }

 private:
  at::Tensor shaped(const std::vector<double>& numbers, const at::Tensor& values,
                    int64_t dims) const;

  std::vector<double> mean_;
  std::vector<double> std_;
};

/// What is fitted to each key; `keys` empty: all keys of floats. Reads all examples, by `labels`
/// where it can. NaN is left out. Throws Error for a key whose values are no numbers, are infinite
/// or are all NaN, and for more than 10,000 numbers in all. Numbers that are all the same have the
/// standard deviation 1.
std::map<std::string, Standardization> fit_standardization(const Dataset& dataset,
                                                           const std::vector<std::string>& keys);

/// The parameters `mean` and `std` of a Standardized at `params`; empty when they are not there.
/// Throws UsageError for anything but maps from the same keys to numbers, or lists of as many.
std::map<std::string, Standardization> read_standardization(const Config& params);

/// Writes them into the config.
void save_standardization(const std::map<std::string, Standardization>& all, const Config& params);

}  // namespace stepop
