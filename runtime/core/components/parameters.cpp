#include "runtime/core/components/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

/// As a person writes it: `1e-3` and `25`, not `0.001` and `25.0`.
std::string short_text(double number) {
  if (!std::isfinite(number)) return flow_yaml(Value(number));
  const std::string plain = fmt::format("{}", number);
  for (int digits = 0; digits < 4; ++digits) {
    const std::string rounded = fmt::format("{:.{}e}", number, digits);
    const size_t e = rounded.find('e');
    const int power = std::stoi(rounded.substr(e + 1));
    if (power > -3 && power < 4) return plain;
    if (std::stod(rounded) == number) return fmt::format("{}e{}", rounded.substr(0, e), power);
  }
  return plain;
}

/// A highest number from here on is there against overflows alone.
constexpr double kNoLimit = 1e18;

/// A default in `stepop list`.
std::string default_text(const Value& value) {
  if (value.is_null()) return "none";
  if (value.is_float()) return short_text(value.as_float());
  if (!value.is_list()) return flow_yaml(value);
  std::vector<std::string> items;
  for (const Value& item : value.as_list()) items.push_back(default_text(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

/// `text` is the number as the message shows it.
void check_number(const Config& config, std::string_view path, double number,
                  const std::string& text, const Range& range) {
  if (!range.is_limited() || range.contains(number)) return;
  std::string allowed = range.text();
  if (range.highest >= kNoLimit && range.highest < Range().highest) {
    const Range above{.lowest = range.lowest, .has_lowest = range.has_lowest};
    allowed = above.contains(number) ? fmt::format("{:.0f} or less", range.highest) : above.text();
  }
  throw config.error(path, fmt::format("expected {}, found {}", allowed, text));
}

template <class T>
void check_value(const Config& config, std::string_view path, const T& value,
                 const Allowed& allowed) {
  if constexpr (std::is_same_v<T, std::string>) {
    const auto& names = allowed.choices;
    if (names.empty() || std::ranges::find(names, value) != names.end()) return;
    const std::vector<std::string> first(names.begin(), names.end() - 1);
    throw config.error(path, fmt::format("expected {}{}{}, found \"{}\"", fmt::join(first, ", "),
                                         first.empty() ? "" : " or ", names.back(), value));
  } else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    check_number(config, path, static_cast<double>(value), fmt::format("{}", value), allowed.range);
  }
}

template <class T>
void check_value(const Config& config, std::string_view path, const std::vector<T>& values,
                 const Allowed& allowed) {
  for (size_t i = 0; i < values.size(); ++i) {
    check_value(config, fmt::format("{}/{}", path, i), values[i], allowed);
  }
}

template <class T>
T checked(const Config& config, std::string_view path, const Allowed& allowed) {
  T value = config.get<T>(path);
  check_value(config, path, value, allowed);
  return value;
}

template <class T>
Value list_value(const T& values) {
  return Value(Value::List(values.begin(), values.end()));
}

}  // namespace

bool Range::contains(double number) const {
  const bool is_above = has_lowest ? number >= lowest : number > lowest;
  return is_above && (has_highest ? number <= highest : number < highest);
}

std::string Range::text() const {
  const bool is_from = lowest > Range().lowest;
  const bool is_to = highest < Range().highest;
  if (is_from && is_to) {
    return fmt::format("a number {} {} {} {}", has_lowest ? "from" : "above", lowest,
                       has_highest ? "to" : "to below", highest);
  }
  if (is_from)
    return has_lowest ? fmt::format("{} or more", lowest) : fmt::format("more than {}", lowest);
  return has_highest ? fmt::format("{} or less", highest) : fmt::format("less than {}", highest);
}

std::string ParameterType::text() const {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.push_back(fmt::format("'{}'", choice));
  const std::string all = fmt::format("{}", fmt::join(names, " | "));
  if (kind.empty() || (kind == "text" && !choices.empty())) return all;
  std::string result = kind;
  for (const char* number : {"int", "number"}) {
    if (!range.is_limited() || !result.starts_with(number)) continue;
    const bool is_minimum = range.has_lowest && range.highest >= kNoLimit;
    result.insert(std::string_view(number).size(), is_minimum ? fmt::format(" >= {}", range.lowest)
                                                              : fmt::format(" ({})", range.text()));
  }
  return all.empty() ? result : result + " | " + all;
}

const Config* Parameters::describe(Parameter parameter) {
  all_.push_back(std::move(parameter));
  return config_ ? &*config_ : nullptr;
}

const Config* Parameters::describe_required(std::string_view name, std::string kind,
                                            std::string_view about) {
  return is_needed(name, about, std::move(kind), {}) ? &*config_ : nullptr;
}

const Config* Parameters::describe_optional(std::string_view name, std::string kind,
                                            std::string_view about) {
  return is_given(name, Value(), about, std::move(kind), {}) ? &*config_ : nullptr;
}

bool Parameters::is_given(std::string_view name, const Value& usual, std::string_view about,
                          std::string kind, const Allowed& allowed) {
  const bool is_path = kind == "path";
  describe({std::string(name),
            default_text(usual),
            std::string(about),
            is_path,
            {std::move(kind), allowed.range, allowed.choices}});
  if (!config_ || config_->has(name)) return config_.has_value();
  if (!usual.is_null()) config_->note_default(name, usual);
  return false;
}

bool Parameters::is_needed(std::string_view name, std::string_view about, std::string kind,
                           const Allowed& allowed) {
  const bool is_path = kind == "path";
  return describe({std::string(name),
                   "",
                   std::string(about),
                   is_path,
                   {std::move(kind), allowed.range, allowed.choices}}) != nullptr;
}

// What Config reads itself.
#define STEPOP_PARAMETER_OF(T, words, value)                                                    \
  template <>                                                                                   \
  T ParameterOf<T>::read(const Config& config, std::string_view path, const Allowed& allowed) { \
    return checked<T>(config, path, allowed);                                                   \
  }                                                                                             \
  template <>                                                                                   \
  Value ParameterOf<T>::shown(const T& usual) {                                                 \
    return value;                                                                               \
  }                                                                                             \
  template <>                                                                                   \
  std::string ParameterOf<T>::kind() {                                                          \
    return words;                                                                               \
  }
STEPOP_PARAMETER_OF(bool, "bool", Value(usual))
STEPOP_PARAMETER_OF(int64_t, "int", Value(usual))
STEPOP_PARAMETER_OF(double, "number", Value(usual))
STEPOP_PARAMETER_OF(std::string, "text", Value(usual))
STEPOP_PARAMETER_OF(Value, "any", usual)
STEPOP_PARAMETER_OF(std::vector<int64_t>, "list of int", list_value(usual))
STEPOP_PARAMETER_OF(std::vector<double>, "list of number", list_value(usual))
STEPOP_PARAMETER_OF(std::vector<std::string>, "list of text", list_value(usual))
#undef STEPOP_PARAMETER_OF

template <>
Path ParameterOf<Path>::read(const Config& config, std::string_view path, const Allowed&) {
  return {config.get_path(path)};
}
template <>
Value ParameterOf<Path>::shown(const Path& usual) {
  return Value(usual.text);
}
template <>
std::string ParameterOf<Path>::kind() {
  return "path";
}

template <class T, size_t n>
std::array<T, n> read_array(const Config& config, std::string_view path, const Allowed& allowed) {
  const auto numbers = config.get<std::vector<T>>(path);
  const bool is_allowed = std::ranges::all_of(numbers, [&](T one) {
    return !allowed.range.is_limited() || allowed.range.contains(static_cast<double>(one));
  });
  std::array<T, n> result;
  if (numbers.size() == n && is_allowed) {
    std::ranges::copy(numbers, result.begin());
    return result;
  }
  std::string each = allowed.range.is_limited() ? ", each " + allowed.range.text() : "";
  if (const size_t at = each.find("a number "); at != std::string::npos) each.erase(at, 9);
  throw config.error(path, fmt::format("expected {} numbers{}, found [{}]",
                                       n == 2 ? "two" : "three", each, fmt::join(numbers, ", ")));
}

#define STEPOP_ARRAY_PARAMETER(T, n, words)                                   \
  template <>                                                                 \
  std::array<T, n> ParameterOf<std::array<T, n>>::read(                       \
      const Config& config, std::string_view path, const Allowed& allowed) {  \
    return read_array<T, n>(config, path, allowed);                           \
  }                                                                           \
  template <>                                                                 \
  Value ParameterOf<std::array<T, n>>::shown(const std::array<T, n>& usual) { \
    return list_value(usual);                                                 \
  }                                                                           \
  template <>                                                                 \
  std::string ParameterOf<std::array<T, n>>::kind() {                         \
    return words;                                                             \
  }
STEPOP_ARRAY_PARAMETER(int64_t, 2, "list of int")
STEPOP_ARRAY_PARAMETER(int64_t, 3, "list of int")
STEPOP_ARRAY_PARAMETER(double, 2, "list of number")
STEPOP_ARRAY_PARAMETER(double, 3, "list of number")
#undef STEPOP_ARRAY_PARAMETER

}  // namespace stepop
