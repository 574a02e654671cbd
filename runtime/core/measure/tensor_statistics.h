#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace stepop {

/// `uint8 [60000, 28, 28]`, for messages.
std::string describe_tensor(const at::Tensor& tensor);

/// Statistics of the numbers in one tensor, or in many blocks of a large one; constant memory.
class TensorStatistics {
 public:
  /// Adds the numbers of a CPU tensor of any type; bool counts as 0 and 1. For complex numbers,
  /// only NaN and infinity are counted.
  void add(const at::Tensor& values);

  int64_t count() const { return count_; }
  int64_t nans() const { return nans_; }
  int64_t infinities() const { return infinities_; }

  /// Over the finite numbers; nothing if there are none.
  std::optional<double> min() const { return optional(min_); }
  std::optional<double> max() const { return optional(max_); }
  std::optional<double> mean() const { return optional(mean_); }

 private:
  std::optional<double> optional(double value) const {
    return finite_ > 0 ? std::optional(value) : std::nullopt;
  }

  int64_t count_ = 0;
  int64_t nans_ = 0;
  int64_t infinities_ = 0;
  int64_t finite_ = 0;
  double min_ = 0;
  double max_ = 0;
  double mean_ = 0;
};

}  // namespace stepop
