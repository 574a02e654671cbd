#include "runtime/train/when/trigger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/core/base/nearest.h"
#include "runtime/train/when/duration.h"

namespace stepop {
namespace {

/// Relative; larger than the rounding error of a sum of powers.
constexpr long double kRounding = 1e-16L;

constexpr const char* kOrElse = ", or a map with \"every\"";

}  // namespace

Trigger Trigger::every_steps(double every, double grow, double up_to) {
  Trigger trigger;
  trigger.every_ = every;
  trigger.grow_ = grow;
  trigger.up_to_ = std::max(every, up_to);
  trigger.set_growth();
  return trigger;
}

Trigger Trigger::and_at_end() const {
  Trigger trigger = *this;
  trigger.at_end_ = true;
  return trigger;
}

void Trigger::read_into(const Config& config, std::string_view path, int64_t steps_per_epoch,
                        double& target, bool may_be_zero) {
  const Duration duration = read_duration(config, path, may_be_zero, kOrElse);
  if (has_unit_ && duration.amount > 0 && duration.axis() != axis_) {
    throw config.error(path, "minutes cannot be mixed with steps or epochs in one trigger");
  }
  if (duration.amount > 0) {
    axis_ = duration.axis();
    has_unit_ = true;
  }
  target = duration.length(steps_per_epoch);
}

Trigger::Trigger(const Config& config, std::string_view path, int64_t steps_per_epoch) {
  const Value* value = config.peek(path);
  if (value == nullptr || !value->is_map()) {
    read_into(config, path, steps_per_epoch, every_);
    up_to_ = every_;
    return;
  }
  const Config map = config.at(path);
  const auto read = [&](std::string_view key, double& target, bool may_be_zero = false) {
    if (map.has(key)) read_into(map, key, steps_per_epoch, target, may_be_zero);
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
  set_growth();
  if (!is_ever_due()) {
    const std::vector<std::string> known = {"every", "from",     "until", "grow",
                                            "up_to", "at_start", "at_end"};
    for (const auto& key : map.keys()) {
      const auto near = nearest_names(key, known, 1);
      if (!near.empty() && std::find(known.begin(), known.end(), key) == known.end()) {
        throw map.error(key, fmt::format("unknown key; did you mean \"{}\"?", near.front()));
      }
    }
    throw config.error(path, fmt::format("is never due: {}{}", kExpectedDuration, kOrElse));
  }
}

void Trigger::set_growth() {
  if (every_ <= 0 || !grows()) return;
  rate_ = std::log(static_cast<long double>(grow_));
  growing_ = std::ceil(std::log(up_to_ / static_cast<long double>(every_)) / rate_);
  length_ = length_of(growing_);
}

long double Trigger::length_of(long double n) const {
  return every_ * std::expm1(n * rate_) / (grow_ - 1.0L) * (1 - kRounding);  // a geometric series
}

int64_t Trigger::times_until(double point) const {
  if (every_ <= 0) return 0;
  point = std::min(point, until_) - from_ + kPeriodTolerance;
  if (point < 0) return 0;
  const int64_t first = from_ > 0 ? 1 : 0;  // `from` counts as a time, the start does not
  if (!grows()) return first + static_cast<int64_t>(point / every_);
  if (point >= length_) {
    return first + static_cast<int64_t>(growing_) +
           static_cast<int64_t>((point - length_) / up_to_);
  }
  auto times = std::floor(std::log1p(point * (grow_ - 1.0L) / every_) / rate_);
  if (length_of(times) > point) --times;
  if (length_of(times + 1) <= point) ++times;
  return first + static_cast<int64_t>(times);
}

bool Trigger::is_due(const Elapsed& before, const Elapsed& now) const {
  return times_until(now.on(axis_)) > times_until(before.on(axis_));
}

}  // namespace stepop
