#include "runtime/tools/survey/key_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace stepop {
namespace {

constexpr int64_t kPiece = 1 << 16;
constexpr const char* kText = "text";

std::string span_of(int64_t least, int64_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

}  // namespace

void KeySummary::note(const std::string& type) {
  ++examples_;
  if (std::ranges::find(types_, type) == types_.end()) types_.push_back(type);
}

void KeySummary::add(const std::string& text) {
  const auto length = static_cast<int64_t>(text.size());
  shortest_ = examples_ == 0 ? length : std::min(shortest_, length);
  longest_ = std::max(longest_, length);
  note(kText);
  count_text(text, 1);
}

void KeySummary::add(const at::Tensor& value) {
  const int64_t dimensions = value.dim();
  if (examples_ == 0) {
    least_ = most_ = value.sizes().vec();
    fewest_dimensions_ = most_dimensions_ = dimensions;
  }
  fewest_dimensions_ = std::min(fewest_dimensions_, dimensions);
  most_dimensions_ = std::max(most_dimensions_, dimensions);
  if (dimensions == static_cast<int64_t>(least_.size())) {
    for (size_t i = 0; i < least_.size(); ++i) {
      const int64_t length = value.sizes()[i];
      least_[i] = std::min(least_[i], length);
      most_[i] = std::max(most_[i], length);
    }
  }
  note(std::string(c10::getDtypeNames(value.scalar_type()).first));
  if (value.is_complex()) return;
  const at::Tensor flat = value.detach().reshape({-1});
  const bool is_long = value.scalar_type() == at::kLong;
  if (is_long) add_numbers<int64_t>(flat, at::kLong);
  if (!is_long) add_numbers<double>(flat, at::kDouble);
  const bool is_whole = c10::isIntegralType(value.scalar_type(), /*includeBool=*/true) &&
                        value.scalar_type() != at::kUInt64;
  if (dimensions == 0 && is_whole) {
    count_value(value.item<int64_t>(), 1);
  } else {
    has_many_ = true;
    values_.clear();
  }
}

template <class T>
void KeySummary::add_numbers(const at::Tensor& flat, at::ScalarType type) {
  for (int64_t begin = 0; begin < flat.numel(); begin += kPiece) {
    const at::Tensor piece =
        flat.slice(0, begin, std::min(begin + kPiece, flat.numel())).to(type).contiguous();
    const auto* numbers = piece.const_data_ptr<T>();
    int64_t count = 0;
    // Sums are relative to the first finite number, so that large numbers lose no digits.
    T base = 0;
    double sum = 0;
    double squares = 0;
    for (int64_t i = 0; i < piece.numel(); ++i) {
      const auto number = static_cast<double>(numbers[i]);
      if (!std::isfinite(number)) {
        ++(std::isnan(number) ? nans_ : infinities_);
        continue;
      }
      if (count == 0) base = numbers[i];
      const bool is_first = finite_ + count == 0;
      min_ = is_first ? number : std::min(min_, number);
      max_ = is_first ? number : std::max(max_, number);
      double offset = number - static_cast<double>(base);
      if constexpr (std::is_integral_v<T>) {
        offset = static_cast<double>(static_cast<long double>(numbers[i]) -
                                     static_cast<long double>(base));
      }
      sum += offset;
      squares += offset * offset;
      ++count;
    }
    if (count == 0) continue;
    const double mean = sum / static_cast<double>(count);
    merge_moments(count, static_cast<long double>(base), mean, std::max(0.0, squares - sum * mean));
  }
}

/// `mean` is that of the differences to `base`.
void KeySummary::merge_moments(int64_t count, long double base, double mean, double squares) {
  if (count == 0) return;
  if (finite_ == 0) base_ = base;
  const auto mine = static_cast<double>(finite_);
  const auto others = static_cast<double>(count);
  const double difference = static_cast<double>(base - base_) + mean - mean_;
  finite_ += count;
  const double share = others / static_cast<double>(finite_);
  mean_ += difference * share;
  squares_ += squares + difference * difference * mine * share;
}

std::optional<double> KeySummary::deviation() const {
  if (finite_ == 0) return std::nullopt;
  return std::sqrt(squares_ / static_cast<double>(finite_));
}

void KeySummary::count_value(int64_t value, int64_t times) {
  if (has_many_) return;
  values_[value] += times;
  if (values_.size() > kMostDistinct) {
    has_many_ = true;
    values_.clear();
  }
}

void KeySummary::count_text(const std::string& text, int64_t times) {
  if (has_many_) return;
  texts_[text] += times;
  if (texts_.size() > kMostDistinct) {
    has_many_ = true;
    texts_.clear();
  }
}

void KeySummary::merge(const KeySummary& other) {
  if (other.examples_ == 0) return;
  if (examples_ == 0) {
    *this = other;
    return;
  }
  examples_ += other.examples_;
  for (const auto& type : other.types_) {
    if (std::ranges::find(types_, type) == types_.end()) types_.push_back(type);
  }
  if (least_.size() == other.least_.size()) {
    for (size_t i = 0; i < least_.size(); ++i) {
      least_[i] = std::min(least_[i], other.least_[i]);
      most_[i] = std::max(most_[i], other.most_[i]);
    }
  }
  fewest_dimensions_ = std::min(fewest_dimensions_, other.fewest_dimensions_);
  most_dimensions_ = std::max(most_dimensions_, other.most_dimensions_);
  shortest_ = std::min(shortest_, other.shortest_);
  longest_ = std::max(longest_, other.longest_);
  nans_ += other.nans_;
  infinities_ += other.infinities_;
  if (other.finite_ > 0) {
    min_ = finite_ == 0 ? other.min_ : std::min(min_, other.min_);
    max_ = finite_ == 0 ? other.max_ : std::max(max_, other.max_);
  }
  merge_moments(other.finite_, other.base_, other.mean_, other.squares_);
  has_many_ = has_many_ || other.has_many_;
  if (has_many_) {
    values_.clear();
    texts_.clear();
  }
  for (const auto& [value, times] : other.values_) count_value(value, times);
  for (const auto& [text, times] : other.texts_) count_text(text, times);
}

std::string KeySummary::type_text() const { return fmt::format("{}", fmt::join(types_, ", ")); }

std::string KeySummary::shape_text() const {
  if (is_text()) return span_of(shortest_, longest_) + " bytes";
  if (fewest_dimensions_ != most_dimensions_) {
    return fmt::format("[...], {} dimensions", span_of(fewest_dimensions_, most_dimensions_));
  }
  std::vector<std::string> lengths;
  for (size_t i = 0; i < least_.size(); ++i) lengths.push_back(span_of(least_[i], most_[i]));
  return fmt::format("[{}]", fmt::join(lengths, ", "));
}

std::map<std::string, int64_t> KeySummary::counts() const {
  std::map<std::string, int64_t> counts = texts_;
  for (const auto& [value, times] : values_) {
    const bool is_named = value >= 0 && value < std::ssize(names_);
    const std::string name = is_named ? " " + names_[static_cast<size_t>(value)] : "";
    counts[fmt::format("{}{}", value, name)] = times;
  }
  return counts;
}

}  // namespace stepop
