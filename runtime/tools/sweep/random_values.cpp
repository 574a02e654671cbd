#include "runtime/tools/sweep/random_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/base/random.h"

namespace stepop {
namespace {

constexpr double kMostInteger = 1e15;  // doubles represent all integers up to this

[[noreturn]] void fail_values(const std::string& path, const Value& value,
                              const std::string& message) {
  throw UsageError(fmt::format("{}: random/values/{}: {}", value.origin().text(), path, message));
}

std::optional<double> number_of(const Value& value) {
  if (value.is_int()) return static_cast<double>(value.as_int());
  return value.is_float() ? std::optional(value.as_float()) : std::nullopt;
}

/// Rounds to four digits, as far as the range allows.
double rounded(double number, double low, double high) {
  return std::clamp(std::strtod(fmt::format("{:.4g}", number).c_str(), nullptr), low, high);
}

}  // namespace

RandomValues::RandomValues(const std::string& path, const Value& description)
    : path_(path), origin_(description.origin()) {
  constexpr const char* kExpected =
      "expected one of {uniform: [a, b]}, {log_uniform: [a, b]}, {integer: [a, b]} and {choice: "
      "[...]}, found ";
  if (!description.is_map() || description.as_map().size() != 1) {
    fail_values(path, description, kExpected + description.describe());
  }
  const auto& [kind, values] = *description.as_map().begin();
  if (kind == "choice") {
    if (!values.is_list() || values.as_list().empty()) {
      fail_values(path, values, "choice: expected a list of values, found " + values.describe());
    }
    choices_ = values.as_list();
    return;
  }
  if (kind == "uniform") {
    kind_ = Kind::kUniform;
  } else if (kind == "log_uniform") {
    kind_ = Kind::kLogUniform;
  } else if (kind == "integer") {
    kind_ = Kind::kInteger;
  } else {
    fail_values(path, description, fmt::format("{}\"{}\"", kExpected, kind));
  }
  const auto end = [&](size_t i) {
    return values.is_list() && values.as_list().size() == 2 ? number_of(values.as_list()[i])
                                                            : std::nullopt;
  };
  const std::optional<double> low = end(0);
  const std::optional<double> high = end(1);
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high) || *low >= *high) {
    fail_values(path, values,
                kind + ": expected two numbers, first the smaller one, as in [0, 0.5]");
  }
  const auto is_whole = [](double number) {
    return std::floor(number) == number && std::abs(number) <= kMostInteger;
  };
  if (kind_ == Kind::kInteger && !(is_whole(*low) && is_whole(*high))) {
    fail_values(path, values, "integer: expected two whole numbers, as in [1, 8]");
  }
  if (kind_ == Kind::kLogUniform && *low <= 0) {
    fail_values(path, values, "log_uniform: expected two numbers above 0, as in [1e-5, 1e-2]");
  }
  low_ = *low;
  high_ = *high;
}

Value RandomValues::draw(uint64_t seed, uint64_t number) const {
  Random random(mix_seed({seed, seed_of(path_), number}));
  Value value;
  switch (kind_) {
    case Kind::kChoice:
      value = choices_[static_cast<size_t>(random.below(static_cast<int64_t>(choices_.size())))];
      return value;
    case Kind::kInteger:
      value = static_cast<int64_t>(low_) + random.below(static_cast<int64_t>(high_ - low_) + 1);
      break;
    case Kind::kUniform:
      value = rounded(low_ + (high_ - low_) * random.uniform(), low_, high_);
      break;
    case Kind::kLogUniform:
      value =
          rounded(std::exp(std::log(low_) + (std::log(high_) - std::log(low_)) * random.uniform()),
                  low_, high_);
      break;
  }
  return value.set_origin(origin_);
}

}  // namespace stepop
