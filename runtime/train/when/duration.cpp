#include "runtime/train/when/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "runtime/train/when/training_length.h"

namespace stepop {
namespace {

constexpr const char* kExpectedTime = "expected a time such as 3h50m, 90m, 1d2h or 45s";

/// The number at the start of `text`, and its length: digits with at most one point.
struct Number {
  double value = 0;
  size_t length = 0;
};

std::optional<Number> leading_number(std::string_view text) {
  const size_t length = std::min(text.find_first_not_of("0123456789."), text.size());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + length, value);
  if (length == 0 || error != std::errc() || end != text.data() + length) return std::nullopt;
  return Number{value, length};
}

/// The number in `500 examples`, `10k examples`, `1.5M examples`; nothing for any other text.
std::optional<double> parse_examples(std::string_view text) {
  constexpr std::string_view kUnit = " examples";
  const auto number = leading_number(text);
  if (!number || !text.ends_with(kUnit)) return std::nullopt;
  text = text.substr(number->length, text.size() - number->length - kUnit.size());
  if (text == "k") return number->value * 1e3;
  if (text == "M") return number->value * 1e6;
  return text.empty() ? std::optional(number->value) : std::nullopt;
}

/// The seconds in `3h50m`; nothing for any other text.
std::optional<double> parse_seconds(std::string_view text) {
  constexpr std::string_view kUnits = "dhms";
  constexpr double kSeconds[] = {86400, 3600, 60, 1};
  double seconds = 0;
  size_t next_unit = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto number = leading_number(text);
    if (!number || number->length == text.size()) return std::nullopt;
    const size_t unit = kUnits.find(text[number->length], next_unit);
    if (unit == std::string_view::npos) return std::nullopt;
    seconds += number->value * kSeconds[unit];
    next_unit = unit + 1;
    text.remove_prefix(number->length + 1);
  }
  return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
}

}  // namespace

std::string Duration::text() const {
  const char* name = unit == Unit::kSteps ? "step" : unit == Unit::kEpochs ? "epoch" : "minute";
  return fmt::format("{:.6g} {}{}", amount, name, amount == 1 ? "" : "s");
}

Duration read_duration(const Config& config, std::string_view path, bool may_be_zero,
                       const char* or_else) {
  const Value value = config.get<Value>(path);
  Duration duration;
  char unit = 's';
  if (value.is_int()) {
    duration.amount = static_cast<double>(value.as_int());
  } else if (value.is_float()) {
    duration.amount = value.as_float();
  } else if (const auto examples = parse_examples(value.is_text() ? value.as_text() : "")) {
    const int64_t in_step = LengthScope::find(config, path).examples_per_step;
    duration.amount = std::ceil(*examples / static_cast<double>(in_step));
  } else {
    const std::string text = !value.is_text()               ? ""
                             : value.as_text() == kToTheEnd ? "100%"
                                                            : value.as_text();
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), duration.amount);
    if (error != std::errc() || end + 1 != text.data() + text.size()) {
      throw config.error(
          path, fmt::format("{}{}, found {}", kExpectedDuration, or_else, value.describe()));
    }
    unit = *end;
  }
  if (std::string_view("sem%").find(unit) == std::string_view::npos) {
    throw config.error(path, fmt::format("unknown unit \"{}\" in {}; there are s (steps), e "
                                         "(epochs), m (minutes), % (of the training) and "
                                         "\" examples\"",
                                         unit, value.describe()));
  }
  // A duration of 0 is the point where the training starts; a period cannot be 0.
  const double amount = duration.amount;
  if (!(amount > 0 || (amount == 0 && may_be_zero)) || std::isinf(amount)) {
    throw config.error(
        path, fmt::format("expected {}, found {}", may_be_zero ? "0 or more" : "more than 0",
                          value.describe()));
  }
  if (unit == '%') {
    const auto all = static_cast<double>(LengthScope::find(config, path).num_steps);
    duration.amount = std::round(amount / 100 * all);
    if (!may_be_zero) duration.amount = std::max(duration.amount, 1.0);
    return duration;
  }
  duration.unit = unit == 's'   ? Duration::Unit::kSteps
                  : unit == 'e' ? Duration::Unit::kEpochs
                                : Duration::Unit::kMinutes;
  return duration;
}

int64_t read_steps(const Config& config, std::string_view path, int64_t steps_per_epoch,
                   std::string_view why, bool may_be_zero) {
  constexpr double kMostSteps = 1e15;  // a sum of some such numbers does not overflow
  const Duration duration = read_duration(config, path, may_be_zero);
  if (duration.axis() != Duration::Axis::kSteps) throw no_minutes(config, path, why);
  const double steps = duration.length(steps_per_epoch);
  if (steps > kMostSteps) {
    throw config.error(
        path, "expected a number that can be reached, found " + config.peek(path)->describe());
  }
  return std::max<int64_t>(std::llround(steps), may_be_zero ? 0 : 1);
}

int64_t read_length(const Config& config, std::string_view path, int64_t least, int64_t begin) {
  const Value* value = config.peek(path);
  const bool is_number = value == nullptr || value->is_int() || value->is_float();
  if (is_number) {
    const int64_t steps = config.get_at_least(path, least);
    CountsEpochs::note(config, path, steps);
    return steps;
  }
  const bool is_end = value->is_text() && value->as_text() == kToTheEnd;
  const bool is_in_epochs = value->is_text() && value->as_text().ends_with('e');
  const int64_t epoch = is_in_epochs ? LengthScope::find(config, path).steps_per_epoch : 1;
  const int64_t steps = read_steps(config, path, epoch, "a training step has no fixed length",
                                   /*may_be_zero=*/least == 0);
  return std::max(is_end ? steps - begin - LaterBegin::steps() : steps, least);
}

int64_t read_length_or(const Config& config, std::string_view path, int64_t least,
                       int64_t fallback) {
  if (config.has(path)) return read_length(config, path, least);
  // Read, so that it is written with the config.
  if (!CountsEpochs::epoch() || fallback == 0) return config.get(path, fallback);
  config.get(path, fmt::format("{}e", fallback));
  return fallback * CountsEpochs::steps();
}

std::vector<int64_t> read_lengths(const Config& config, std::string_view path) {
  const Value* value = config.peek(path);
  if (value == nullptr || !value->is_list()) return config.get<std::vector<int64_t>>(path);
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < value->as_list().size(); ++i) {
    lengths.push_back(read_length(config, fmt::format("{}/{}", path, i), 0));
  }
  return lengths;
}

UsageError no_minutes(const Config& config, std::string_view path, std::string_view why) {
  return config.error(path,
                      fmt::format("expected steps (100) or epochs (2e), found minutes: {}", why));
}

double read_seconds(const Config& config, std::string_view path) {
  const Value value = config.get<Value>(path);
  const bool is_number = value.is_int() || value.is_float();
  const auto seconds = parse_seconds(value.is_text() ? value.as_text() : "");
  if (!seconds) {
    throw config.error(path, fmt::format("{}{}, found {}", kExpectedTime,
                                         is_number ? ", with its unit" : "", value.describe()));
  }
  if (*seconds <= 0) {
    throw config.error(path, fmt::format("expected more than 0, found {}", value.describe()));
  }
  return *seconds;
}

}  // namespace stepop
