#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "runtime/core/config/config.h"
#include "runtime/train/when/duration.h"

namespace stepop {

/// When something is due, as a config says it: `100` or `100s` (steps), `2e` (epochs), `10m`
/// (minutes of training), or a map
/// `{every: 500, from: 1000, until: 9000, at_start: true, at_end: true, grow: 2, up_to: 1000}`.
///
/// A trigger is due when a new period begins: at `every`, 2 `every`, ... With `grow` the interval
/// is multiplied after each time until it reaches `up_to`. With `from` the first time is at `from`.
/// A trigger is a function of the step and the time alone, so it needs no saved state.
class Trigger {
 public:
  /// Never due.
  Trigger() = default;
  /// Throws UsageError for a value that is no trigger.
  Trigger(const Config& config, std::string_view path, int64_t steps_per_epoch);

  static Trigger every_steps(double every, double grow = 1, double up_to = 0);
  static Trigger never() { return {}; }
  /// This trigger, due at the end of the training as well.
  Trigger and_at_end() const;

  /// Whether a period began after `before` and no later than `now`.
  bool is_due(const Elapsed& before, const Elapsed& now) const;
  bool at_start() const { return at_start_; }
  bool at_end() const { return at_end_; }
  bool depends_on_clock() const { return axis_ == Duration::Axis::kMinutes; }
  /// Whether the trigger may be due in a training of `steps` steps. True for minutes, as the
  /// duration of a training is unknown.
  bool is_due_within(int64_t steps) const {
    return at_start_ || at_end_ || (depends_on_clock() && every_ > 0) ||
           is_due({}, {.step = steps});
  }
  /// How often the trigger is due in a training of `steps` steps; nothing for minutes.
  std::optional<int64_t> times_within(int64_t steps) const {
    if (depends_on_clock()) return std::nullopt;
    return times_until(static_cast<double>(steps)) + (at_start_ ? 1 : 0) + (at_end_ ? 1 : 0);
  }
  bool is_ever_due() const { return every_ > 0 || at_start_ || at_end_; }

 private:
  bool grows() const { return grow_ > 1 && every_ < up_to_; }
  /// The length of the first `n` intervals that grow.
  long double length_of(long double n) const;
  /// How many times the trigger was due up to a point on the axis of its unit.
  int64_t times_until(double point) const;
  void set_growth();
  void read_into(const Config& config, std::string_view path, int64_t steps_per_epoch,
                 double& target, bool may_be_zero = false);

  Duration::Axis axis_ = Duration::Axis::kSteps;
  bool has_unit_ = false;
  double every_ = 0;  // 0: never
  double grow_ = 1;
  double up_to_ = 0;
  // Of the intervals that grow. Long doubles: their sum is compared with steps, and `grow` may be
  // close to 1.
  long double rate_ = 0;     ///< The logarithm of `grow`.
  long double growing_ = 0;  ///< How many they are.
  long double length_ = 0;   ///< Of all of them.
  double from_ = 0;
  double until_ = std::numeric_limits<double>::infinity();
  bool at_start_ = false;
  bool at_end_ = false;
};

}  // namespace stepop
