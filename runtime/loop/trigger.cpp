#include "runtime/loop/trigger.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace stepop {
namespace {

constexpr const char* kExpected =
    "expected a number of steps (100), epochs (2e) or minutes (10m), or a map with \"every\"";

/// Epochs and minutes need not be whole; a point that rounding put just below a period is in it.
constexpr double kTolerance = 1e-9;

}  // namespace

Trigger Trigger::every_steps(double every, double grow, double up_to) {
  Trigger trigger;
  trigger.every_ = every;
  trigger.grow_ = grow;
  trigger.up_to_ = std::max(every, up_to);
  return trigger;
}

void Trigger::read_duration(const Config& config, std::string_view path, int64_t steps_per_epoch,
                            double& target, bool may_be_zero) {
  const Value value = config.get<Value>(path);
  double number = 0;
  char unit = 's';
  if (value.is_int()) {
    number = static_cast<double>(value.as_int());
  } else if (value.is_float()) {
    number = value.as_float();
  } else if (value.is_text()) {
    const std::string& text = value.as_text();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end + 1 != text.data() + text.size()) {
      throw config.error(path, fmt::format("{}, found {}", kExpected, value.describe()));
    }
    unit = *end;
  } else {
    throw config.error(path, fmt::format("{}, found {}", kExpected, value.describe()));
  }
  if (unit != 's' && unit != 'e' && unit != 'm') {
    throw config.error(path, fmt::format("unknown unit \"{}\" in {}; there are s (steps), e "
                                         "(epochs) and m (minutes)",
                                         unit, value.describe()));
  }
  // The very start is a point in time, but no period.
  if (!(number > 0 || (number == 0 && may_be_zero)) || std::isinf(number)) {
    throw config.error(
        path, fmt::format("expected {}, found {}", may_be_zero ? "0 or more" : "more than 0",
                          value.describe()));
  }
  const bool in_minutes = unit == 'm';
  if (has_unit_ && number > 0 && in_minutes != in_minutes_) {
    throw config.error(path, "minutes cannot be mixed with steps or epochs in one trigger");
  }
  if (number > 0) {
    in_minutes_ = in_minutes;
    has_unit_ = true;
  }
  target = unit == 'e' ? number * static_cast<double>(steps_per_epoch) : number;
}

Trigger::Trigger(const Config& config, std::string_view path, int64_t steps_per_epoch) {
  const Value* value = config.peek(path);
  if (value == nullptr || !value->is_map()) {
    read_duration(config, path, steps_per_epoch, every_);
    up_to_ = every_;
    return;
  }
  const Config map = config.at(path);
  const auto read = [&](std::string_view key, double& target, bool may_be_zero = false) {
    if (map.has(key)) read_duration(map, key, steps_per_epoch, target, may_be_zero);
  };
  read("every", every_);
  up_to_ = every_;
  read("up_to", up_to_);
  read("from", from_, true);
  read("until", until_);
  at_start_ = map.get("at_start", false);
  at_end_ = map.get("at_end", false);
  grow_ = map.get("grow", 1.0);
  if (!(grow_ >= 1)) throw map.error("grow", fmt::format("expected 1 or more, found {}", grow_));
  if (grow_ > 1 && !map.has("up_to")) {
    throw map.error("up_to", "missing: an interval that grows needs its largest value");
  }
  if (until_ < from_) throw map.error("until", "expected at least as much as \"from\"");
  if (grow_ > 1 && up_to_ < every_) {
    throw map.error("up_to", "expected at least as much as \"every\"");
  }
  if (!is_ever_due()) {
    throw config.error(path, fmt::format("is never due: {}", kExpected));
  }
}

int64_t Trigger::times_until(double point) const {
  if (every_ <= 0) return 0;
  point = std::min(point, until_) - from_ + kTolerance;
  if (point < 0) return 0;
  int64_t times = from_ > 0 ? 1 : 0;  // `from` itself is a time; the very start is `at_start`
  double interval = every_;
  while (grow_ > 1 && interval < up_to_ && point >= interval) {
    point -= interval;
    interval = std::min(interval * grow_, up_to_);
    ++times;
  }
  if (interval < up_to_ && grow_ > 1) return times;
  return times + static_cast<int64_t>(std::floor(point / interval));
}

bool Trigger::is_due(const Elapsed& before, const Elapsed& now) const {
  if (in_minutes_) return times_until(now.minutes) > times_until(before.minutes);
  return times_until(static_cast<double>(now.step)) > times_until(static_cast<double>(before.step));
}

}  // namespace stepop
