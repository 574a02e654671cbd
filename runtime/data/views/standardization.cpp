#include "runtime/data/views/standardization.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/example_random.h"
#include "runtime/data/fitted.h"
#include "runtime/data/keeps_float64.h"

namespace stepop {
namespace {

constexpr size_t kMostNumbers = 10'000;

/// From this first number on, the others are summed as distances to it, as their mean may be beyond
/// 2^53.
constexpr double kLeastBase = 0x1p52;

/// Whether float64 does not have all whole numbers of this size.
bool is_beyond_float64(double number) { return std::abs(number) > 0x1p53; }

/// A whole number as the sum of two float64: the nearest one that is an int64 too, and the rest.
struct TwoParts {
  explicit TwoParts(int64_t whole) : high(static_cast<double>(whole)) {
    if (high >= 0x1p63) high = std::nextafter(high, 0.0);
    rest = static_cast<double>(whole - static_cast<int64_t>(high));
  }
  double high;
  double rest = 0;
};

/// Mean and variance of the numbers of one key, which come example by example (Welford, 1962).
class Moments {
 public:
  explicit Moments(std::string key) : key_(std::move(key)) {}

  /// [examples, ...]
  void add(const at::Tensor& values, int64_t first) {
    if (values.is_complex()) fail(first, "complex numbers");
    if (counts_.empty()) begin(values);
    const bool is_long = values.scalar_type() == at::kLong;
    // float64 has 53 bits; the differences of larger whole numbers fit.
    if (values.sizes().slice(1) != at::IntArrayRef(shape_)) {
      fail(first, fmt::format("{}, the examples before it {}", describe_tensor(values[0]),
                              describe_tensor(at::empty(shape_, values.options()))));
    }
    const at::Tensor near = has_bases_ && is_long ? values.sub(bases_) : values;
    at::Tensor numbers = near.to(at::kDouble);
    if (has_bases_ && !is_long) numbers = numbers.sub(bases_.to(at::kDouble));
    numbers = numbers.contiguous();
    const auto* number = numbers.const_data_ptr<double>();
    for (int64_t row = 0; row < numbers.size(0); ++row) {
      for (size_t place = 0; place < counts_.size(); ++place) {
        for (int64_t i = 0; i < repeats_; ++i) add_number(place, *number++, first + row);
      }
    }
  }

  Standardization made() const {
    std::vector<double> std;
    for (size_t place = 0; place < counts_.size(); ++place) {
      if (counts_[place] == 0) {
        throw Error(fmt::format("Standardized: every value of \"{}\"{} is NaN", key_,
                                counts_.size() == 1 ? "" : fmt::format(" in place {}", place)));
      }
      const double spread = std::sqrt(squares_[place] / static_cast<double>(counts_[place]));
      std.push_back(spread > 0 ? spread : 1);
    }
    if (!has_bases_) return {means_, std};
    std::vector<double> means;
    std::vector<double> rests;
    const at::Tensor bases = bases_.contiguous();
    for (size_t place = 0; place < means_.size(); ++place) {
      const int64_t base = bases.const_data_ptr<int64_t>()[place];
      means.push_back(static_cast<double>(base) + means_[place]);
      rests.push_back(0);
      const bool is_large = base != 0 && is_beyond_float64(means.back());
      if (!is_large || (!are_whole_ && std::abs(means.back()) >= 0x1p63)) continue;
      // A config keeps whole numbers of 64 bits, without their fraction.
      const TwoParts parts(base + std::llround(means_[place]));
      means.back() = parts.high;
      rests.back() = parts.rest;
    }
    return {std::move(means), std, std::move(rests)};
  }

 private:
  void begin(const at::Tensor& numbers) {
    shape_ = numbers.sizes().slice(1).vec();
    const auto places = static_cast<size_t>(shape_.empty() ? 1 : shape_[0]);
    if (places > kMostNumbers) {
      throw Error(fmt::format("Standardized: \"{}\" has {} numbers of its own, at most {} are kept",
                              key_, places, kMostNumbers));
    }
    for (size_t i = 1; i < shape_.size(); ++i) repeats_ *= shape_[i];
    if (places == 0) throw Error(fmt::format("Standardized: \"{}\" holds no numbers", key_));
    counts_.resize(places);
    means_.resize(places);
    squares_.resize(places);
    const auto type = numbers.scalar_type();
    if ((type != at::kLong && type != at::kDouble) || numbers.numel() == 0) return;
    are_whole_ = type == at::kLong;
    const auto count = static_cast<int64_t>(places);
    const at::Tensor first = numbers[0].reshape({count, repeats_}).select(1, 0);
    bases_ = at::zeros({count}, at::kLong);
    for (int64_t place = 0; place < count; ++place) {
      const double size = std::abs(first[place].item<double>());
      if (!(size >= kLeastBase) || (!are_whole_ && size >= 0x1p63)) continue;
      bases_[place].copy_(first[place]);
      has_bases_ = true;
    }
    std::vector<int64_t> beside(shape_.size(), 1);
    if (!shape_.empty()) beside[0] = count;
    bases_ = bases_.reshape(beside);
  }

  void add_number(size_t place, double value, int64_t example) {
    if (std::isnan(value)) return;
    if (std::isinf(value)) fail(example, "an infinite number");
    const auto count = static_cast<double>(++counts_[place]);
    const double step = value - means_[place];
    means_[place] += step / count;
    squares_[place] += step * (value - means_[place]);
  }

  [[noreturn]] void fail(int64_t example, const std::string& found) const {
    throw Error(fmt::format("Standardized: example {}: \"{}\": expected numbers, found {}", example,
                            key_, found));
  }

  std::string key_;
  at::Tensor bases_;            ///< What is subtracted first, int64, for each place; mostly 0.
  bool are_whole_ = false;      ///< The numbers are int64.
  bool has_bases_ = false;      ///< Not all of them are 0.
  std::vector<int64_t> shape_;  ///< The shape of an example.
  int64_t repeats_ = 1;         ///< How many numbers of an example share a mean.
  std::vector<int64_t> counts_;
  std::vector<double> means_;
  std::vector<double> squares_;  ///< Sums of squared distances to the mean.
};

std::vector<std::string> float_keys(const Example& example) {
  std::vector<std::string> keys;
  for (const auto& [key, tensor] : example.tensors) {
    if (tensor.is_floating_point()) keys.push_back(key);
  }
  if (keys.empty()) {
    throw Error("Standardized: the examples have no floats; they have: " +
                example.tensors.key_list());
  }
  return keys;
}

Example example_at(const Dataset& dataset, int64_t index) {
  Random random = random_of_fixed_example(index);
  try {
    return dataset.get(index, random);
  } catch (const std::exception& error) {
    throw Error(fmt::format("example {}: {}", index, error_text(error)));
  }
}

/// Adds labels in blocks, so that a copy of all labels as doubles is never in memory.
void add_labels(Moments& moments, const at::Tensor& labels) {
  constexpr int64_t kNumbers = 1 << 20;
  const int64_t rows = std::max<int64_t>(kNumbers * labels.size(0) / labels.numel(), 1);
  for (int64_t first = 0; first < labels.size(0); first += rows) {
    const int64_t end = std::min(first + rows, labels.size(0));
    moments.add(labels.slice(0, first, end), first);
  }
}

/// What `numbers_of` has rounded away from whole numbers.
std::vector<double> rests_of(const Value& value) {
  std::vector<double> rests;
  const Value::List items = value.is_list() ? value.as_list() : Value::List{value};
  for (const auto& item : items) rests.push_back(item.is_int() ? TwoParts(item.as_int()).rest : 0);
  return rests;
}

std::vector<double> numbers_of(const Value& value, const Config& params, const std::string& place) {
  std::vector<double> numbers;
  const Value::List items = value.is_list() ? value.as_list() : Value::List{value};
  for (const auto& item : items) {
    if (item.is_float()) numbers.push_back(item.as_float());
    if (item.is_int()) numbers.push_back(TwoParts(item.as_int()).high);
  }
  if (!numbers.empty() && numbers.size() == items.size()) return numbers;
  throw params.error(place, "expected a number or a list of numbers, found " + value.describe());
}

}  // namespace

Standardization::Standardization(std::vector<double> mean, std::vector<double> std,
                                 std::vector<double> rest)
    : mean_(std::move(mean)), rest_(std::move(rest)), std_(std::move(std)) {
  rest_.resize(mean_.size());
  constexpr double kFloat32Rounding = 0x1p-24;  // of float32, relative
  constexpr double kMostLost = 1e-3;            // of a deviation
  for (size_t i = 0; i < mean_.size() && i < std_.size(); ++i) {
    needs_float64_ = needs_float64_ || std::abs(mean_[i]) * kFloat32Rounding > kMostLost * std_[i];
  }
}

Standardization::Standardization(const Config& config, const std::string& split,
                                 const std::string& key) {
  const auto part = find_part(config, split, "Standardized");
  if (!part) throw Error(fmt::format("datasets/{} has no Standardized in it", split));
  if (!part->has("mean") && !part->has("fit")) datasets().build(config.root(), part->path());
  const Config source = part->has("fit") ? part_to_fit(*part, "Standardized") : *part;
  if (!source.has("mean")) datasets().build(config.root(), source.path());
  const auto all = read_standardization(source);
  const auto found = all.find(key);
  if (found == all.end()) {
    std::vector<std::string> keys;
    for (const auto& [name, numbers] : all) keys.push_back(name);
    throw Error(fmt::format("{}: \"{}\" is not standardized; its keys are: {}", source.path(), key,
                            list_text(keys)));
  }
  *this = found->second;
}

at::Tensor Standardization::shaped(const std::vector<double>& numbers, const at::Tensor& values,
                                   int64_t dims) const {
  const auto count = static_cast<int64_t>(numbers.size());
  std::vector<int64_t> shape(static_cast<size_t>(dims), 1);
  if (dims > 0) shape[0] = count;
  if (dims == 0 ? count != 1 : (count != 1 && values.size(values.dim() - dims) != count)) {
    throw Error(
        fmt::format("the mean has {} numbers, which do not fit {}; fit it anew: leave out "
                    "mean and std",
                    count, describe_tensor(values)));
  }
  at::Tensor tensor = at::empty(shape, at::kDouble);
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<double>());
  return tensor.to(values.device(), values.scalar_type());
}

at::Tensor Standardization::apply(const at::Tensor& values, int64_t dims) const {
  const auto type = values.scalar_type();
  const bool is_large = std::any_of(mean_.begin(), mean_.end(), is_beyond_float64);
  if (is_large && type == at::kLong) return apply_to_whole(values, dims);
  const bool is_wide = type == at::kLong || type == at::kInt || type == at::kDouble;
  const at::Tensor numbers = values.to(is_wide || needs_float64_ ? at::kDouble : at::kFloat);
  at::Tensor distances = numbers.sub(shaped(mean_, numbers, dims));
  if (is_large) distances.sub_(shaped(rest_, numbers, dims));
  return distances.div_(shaped(std_, numbers, dims)).to(at::kFloat);
}

/// Whole numbers above 2^53 lose nothing when a whole number is subtracted first.
at::Tensor Standardization::apply_to_whole(const at::Tensor& values, int64_t dims) const {
  const at::Tensor means = shaped(mean_, values.to(at::kDouble), dims);
  const at::Tensor wholes = means.floor();
  const at::Tensor distances = values.sub(wholes.to(at::kLong)).to(at::kDouble);
  return distances.sub_(means.sub(wholes).add(shaped(rest_, distances, dims)))
      .div_(shaped(std_, distances, dims))
      .to(at::kFloat);
}

at::Tensor Standardization::undo(const at::Tensor& batch) const {
  const int64_t dims = batch.dim() - 1;
  const at::Tensor numbers = batch.to(needs_float64_ ? at::kDouble : at::kFloat);
  return numbers.mul(shaped(std_, numbers, dims)).add_(shaped(mean_, numbers, dims));
}

std::map<std::string, Standardization> fit_standardization(Dataset& dataset,
                                                           const std::vector<std::string>& keys) {
  const Example first = example_at(dataset, 0);
  std::map<std::string, Moments> read_one_by_one;
  std::map<std::string, Standardization> made;
  size_t numbers = 0;
  for (const auto& key : keys.empty() ? float_keys(first) : keys) {
    Moments moments(key);
    keep_float64(dataset, key);
    const at::Tensor labels = dataset.labels(key);
    if (labels.defined() && labels.numel() > 0) {
      add_labels(moments, labels);
      made[key] = moments.made();
    } else if (first.tensors.contains(key)) {
      read_one_by_one.emplace(key, std::move(moments));
    } else {
      throw Error(fmt::format("Standardized: the examples have no tensor \"{}\"; they have: {}",
                              key, first.tensors.key_list()));
    }
  }
  for (int64_t i = 0; !read_one_by_one.empty() && i < dataset.size(); ++i) {
    const Example example = example_at(dataset, i);
    for (auto& [key, moments] : read_one_by_one) {
      const at::Tensor* values = example.tensors.find(key);
      if (values != nullptr) moments.add(values->unsqueeze(0), i);
    }
  }
  for (const auto& [key, moments] : read_one_by_one) made[key] = moments.made();
  for (const auto& [key, one] : made) numbers += one.mean().size();
  if (numbers > kMostNumbers) {
    throw Error(
        fmt::format("Standardized: {} numbers have a mean of their own, at most {} are kept",
                    numbers, kMostNumbers));
  }
  return made;
}

std::map<std::string, Standardization> read_standardization(const Config& params) {
  std::map<std::string, Standardization> all;
  if (!params.has("mean") && !params.has("std")) return all;
  const auto means = params.get<Value>("mean");
  const auto stds = params.get<Value>("std");
  for (const char* key : {"mean", "std"}) {
    if (params.peek(key)->is_map()) continue;
    throw params.error(
        key, "expected a map from keys to numbers, found " + params.peek(key)->describe());
  }
  if (means.as_map().key_list() != stds.as_map().key_list()) {
    throw params.error("std", fmt::format("expected the keys of mean, {}, found {}",
                                          means.as_map().key_list(), stds.as_map().key_list()));
  }
  for (const auto& [key, value] : means.as_map()) {
    const std::string place = join_path("std", key);
    auto mean = numbers_of(value, params, join_path("mean", key));
    auto std = numbers_of(*stds.as_map().find(key), params, place);
    if (mean.size() != std.size()) {
      throw params.error(place, fmt::format("expected {} numbers, as there are in mean, found {}",
                                            mean.size(), std.size()));
    }
    for (const double one : std) {
      if (!(one > 0)) throw params.error(place, fmt::format("expected above 0, found {}", one));
    }
    all[key] = {std::move(mean), std::move(std), rests_of(value)};
  }
  return all;
}

void save_standardization(const std::map<std::string, Standardization>& all, const Config& params) {
  const auto value_of = [](const std::vector<double>& numbers, const std::vector<double>& rests) {
    Value::List items(numbers.begin(), numbers.end());
    for (size_t i = 0; i < rests.size(); ++i) {
      if (rests[i] == 0) continue;
      items[i] = Value(static_cast<int64_t>(numbers[i]) + static_cast<int64_t>(rests[i]));
    }
    return items.size() == 1 ? items[0] : Value(std::move(items));
  };
  Value::Map means;
  Value::Map stds;
  for (const auto& [key, one] : all) {
    means.set(key, value_of(one.mean(), one.rest()));
    stds.set(key, value_of(one.std(), {}));
  }
  params.set_default("mean", means);
  params.set_default("std", stds);
}

}  // namespace stepop
