#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/config/config.h"

namespace stepop {

/// A span of training as a config says it: `100` or `100s` (steps), `2e` (epochs), `10m` (minutes
/// of training).
struct Duration {
  enum class Unit { kSteps, kEpochs, kMinutes };

  double amount = 0;
  Unit unit = Unit::kSteps;

  bool in_minutes() const { return unit == Unit::kMinutes; }
  /// In minutes when it is `in_minutes()`, else in steps.
  double length(int64_t steps_per_epoch) const {
    return unit == Unit::kEpochs ? amount * static_cast<double>(steps_per_epoch) : amount;
  }
  /// `5 epochs`, `1 step`, `0.5 minutes`.
  std::string text() const;
};

/// Epochs and minutes need not be whole; a point that rounding put just below a period is in it.
inline constexpr double kPeriodTolerance = 1e-9;

inline constexpr const char* kExpectedDuration =
    "expected a number of steps (100), epochs (2e) or minutes (10m)";

/// Reads the duration at `path`. Throws UsageError for what is none, for infinity, and for 0 or
/// less unless it `may_be_zero`; `or_else` is what else may stand there, for the message.
Duration read_duration(const Config& config, std::string_view path, bool may_be_zero = false,
                       const char* or_else = "");

/// Reads a span of time by the clock, in seconds: `3h50m`, `90m`, `1d2h`, `2h30m10s`, `1.5h`; the
/// units d, h, m and s, each at most once and the largest first. Throws UsageError for anything
/// else, a number without a unit included, and for 0.
double read_seconds(const Config& config, std::string_view path);

}  // namespace stepop
