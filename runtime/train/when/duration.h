#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// A span of training as a config says it: `100` or `100s` (steps), `2e` (epochs), `10m` (minutes
/// of training); and `10k examples` and `10%` or `end`, parts of the training, which are read as
/// steps.
struct Duration {
  enum class Unit { kSteps, kEpochs, kMinutes };
  /// Where durations are measured: epochs are so many steps.
  enum class Axis { kSteps, kMinutes };

  double amount = 0;
  Unit unit = Unit::kSteps;

  Axis axis() const { return unit == Unit::kMinutes ? Axis::kMinutes : Axis::kSteps; }
  /// On its axis.
  double length(int64_t steps_per_epoch) const {
    return unit == Unit::kEpochs ? amount * static_cast<double>(steps_per_epoch) : amount;
  }
  /// `5 epochs`, `1 step`, `0.5 minutes`.
  std::string text() const;
};

/// The progress of a training.
struct Elapsed {
  int64_t step = 0;
  double minutes = 0;  ///< The training time of all starts.

  double on(Duration::Axis axis) const {
    return axis == Duration::Axis::kMinutes ? minutes : static_cast<double>(step);
  }
};

/// Epochs and minutes need not be whole. A point that rounding put just below a period belongs to
/// that period.
inline constexpr double kPeriodTolerance = 1e-9;

inline constexpr const char* kExpectedDuration =
    "expected a number of steps (100), epochs (2e), minutes (10m), examples (10k examples), or a "
    "part of the training (10%, end)";
/// Of the texts that are durations.
inline constexpr const char* kDurationPattern =
    "^([0-9.]+([eE][-+]?[0-9]+)?[sem%]|end|[0-9.]+[kM]? examples)$";

/// The whole training, as a duration.
inline constexpr const char* kToTheEnd = "end";

/// Reads the duration at `path`. Examples and parts of the training need a LengthScope. Throws
/// UsageError for a value that is no duration, for infinity, and for 0 or less unless
/// `may_be_zero`. `or_else` says for the message what else the key may hold.
Duration read_duration(const Config& config, std::string_view path, bool may_be_zero = false,
                       const char* or_else = "");

/// Reads a duration in whole steps, at least 1 unless `may_be_zero`. Throws UsageError for minutes,
/// with `why` they cannot be: `a resume could not know them`; and for more than any training has.
int64_t read_steps(const Config& config, std::string_view path, int64_t steps_per_epoch,
                   std::string_view why, bool may_be_zero = false);

/// Reads a length in training steps: `100`, `20e` (epochs), `10%` (of the training), `end` (what is
/// left of the training behind step `begin`). Throws UsageError with the place for anything else,
/// and for less than `least`; a length that rounding or a short training made shorter is `least`.
int64_t read_length(const Config& config, std::string_view path, int64_t least, int64_t begin = 0);
/// The same, with `fallback` steps, or epochs where CountsEpochs says so, for a missing key.
int64_t read_length_or(const Config& config, std::string_view path, int64_t least,
                       int64_t fallback);
/// Reads a list of such lengths of 0 or more.
std::vector<int64_t> read_lengths(const Config& config, std::string_view path);

/// The error of a duration in minutes where `why` forbids them.
UsageError no_minutes(const Config& config, std::string_view path, std::string_view why);

/// Reads a span of time by the clock, in seconds: `3h50m`, `90m`, `1d2h`, `2h30m10s`, `1.5h`; the
/// units d, h, m and s, each at most once and the largest first. Throws UsageError for anything
/// else, a number without a unit included, and for 0.
double read_seconds(const Config& config, std::string_view path);

}  // namespace stepop
