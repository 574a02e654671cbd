#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepop {

/// Statistics of one key's values over many examples. Memory does not grow with their number.
class KeySummary {
 public:
  /// The most different values that are counted one by one.
  static constexpr size_t kMostDistinct = 256;

  /// Adds an example's CPU tensor, of any type. For complex numbers, only the shape is noted.
  void add(const at::Tensor& value);
  /// Adds an example's text.
  void add(const std::string& text);
  /// Adds another summary of the same key.
  void merge(const KeySummary& other);

  /// The number of examples with the key.
  int64_t examples() const { return examples_; }
  bool is_text() const { return !types_.empty() && types_.front() == "text"; }
  /// `float32`, or several types with commas.
  std::string type_text() const;
  /// `[3, 64 to 80, 64]`; `[...]` with the numbers of dimensions when these differ; `3 to 41 bytes`
  /// for texts.
  std::string shape_text() const;

  int64_t nans() const { return nans_; }
  int64_t infinities() const { return infinities_; }
  /// Over the finite numbers; nothing if there are none.
  std::optional<double> min() const { return optional(min_); }
  std::optional<double> max() const { return optional(max_); }
  std::optional<double> mean() const { return optional(static_cast<double>(base_ + mean_)); }
  /// The standard deviation of all numbers, not of a sample.
  std::optional<double> deviation() const;

  /// The number of times that each value occurs, for texts and for integers without dimensions, if
  /// there are at most kMostDistinct values; otherwise empty.
  std::map<std::string, int64_t> counts() const;
  /// From now on `counts` has the names of these numbers behind them: `1 bee`.
  void set_names(std::vector<std::string> names) { names_ = std::move(names); }
  /// Whether there are more different values than `counts` lists.
  bool has_many_values() const { return has_many_; }

 private:
  void note(const std::string& type);
  template <class T>
  void add_numbers(const at::Tensor& flat, at::ScalarType type);
  void merge_moments(int64_t count, long double base, double mean, double squares);
  void count_value(int64_t value, int64_t times);
  void count_text(const std::string& text, int64_t times);
  std::optional<double> optional(double value) const {
    return finite_ > 0 ? std::optional(value) : std::nullopt;
  }

  int64_t examples_ = 0;
  std::vector<std::string> types_;
  std::vector<std::string> names_;
  /// The smallest and largest sizes, over the tensors with as many dimensions as the first.
  std::vector<int64_t> least_, most_;
  int64_t fewest_dimensions_ = 0;
  int64_t most_dimensions_ = 0;
  int64_t shortest_ = 0;  ///< The length of the shortest text, in bytes.
  int64_t longest_ = 0;

  int64_t nans_ = 0;
  int64_t infinities_ = 0;
  int64_t finite_ = 0;
  double min_ = 0;
  double max_ = 0;
  long double base_ = 0;  ///< The first number: that of an int64 is exact.
  double mean_ = 0;       ///< Of the differences to it.
  double squares_ = 0;    ///< The sum of (x - mean)^2.

  bool has_many_ = false;
  std::map<int64_t, int64_t> values_;
  std::map<std::string, int64_t> texts_;
};

}  // namespace stepop
