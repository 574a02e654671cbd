#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/config/registry.h"

namespace stepop {

/// A number that depends on the training step: a learning rate, the weight of a loss.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// The number for the update that follows `step` complete training steps; the first update has
  /// step 0. A pure function: a resumed run needs no state of it.
  virtual double at(int64_t step) const = 0;

  /// The steps in which it falls to a number that it then has for ever; nothing for one that never
  /// ends, ends with a rise or is meant to stay, as a warm-up or a constant part of a chain.
  virtual std::optional<int64_t> fallen_after() const { return std::nullopt; }
};

/// A schedule, and the place in the config that it was built from.
struct BuiltSchedule {
  Config config;
  std::string path;
  std::shared_ptr<const Schedule> schedule;
};

/// Collects the schedules that this thread builds while it lives: of nested ones the outermost.
class ScheduleCollector {
 public:
  explicit ScheduleCollector(std::vector<BuiltSchedule>& schedules);
  ~ScheduleCollector();
  ScheduleCollector(const ScheduleCollector&) = delete;
  ScheduleCollector& operator=(const ScheduleCollector&) = delete;

 private:
  std::vector<BuiltSchedule>* before_;
};

using ScheduleRegistry = Registry<std::unique_ptr<Schedule>(const Config&)>;
ScheduleRegistry& schedules();

/// A number of a config that may be written as a schedule: `lr: 1e-3`, or
/// `lr: {class: cosine, from: 1e-3, steps: 10000}`. Copies are cheap and share the schedule.
class Scheduled {
 public:
  /// Reads `path`; throws UsageError with the place for anything but a number or a schedule.
  Scheduled(const Config& config, std::string_view path);
  /// The same, and `fallback` when the key is missing.
  Scheduled(const Config& config, std::string_view path, double fallback);

  /// As `Schedule::at`.
  double at(int64_t step) const { return schedule_ ? schedule_->at(step) : value_; }
  /// As `Schedule::fallen_after`.
  std::optional<int64_t> fallen_after() const {
    return schedule_ ? schedule_->fallen_after() : std::nullopt;
  }

  /// Throws UsageError at `path` when the number is below `minimum`, is no number at all, or is one
  /// that a float32 cannot hold. A schedule is asked for its first number only.
  const Scheduled& at_least(double minimum, const Config& config, std::string_view path) const;

 private:
  double value_ = 0;
  std::shared_ptr<const Schedule> schedule_;
};

/// The part of `steps` that is over at `step`, in [0, 1].
inline double part_done(int64_t step, int64_t steps) {
  return static_cast<double>(std::clamp<int64_t>(step, 0, steps)) / static_cast<double>(steps);
}

/// Whether a number is finite as a float32, in which most weights are computed.
inline bool fits_float(double number) {
  return std::abs(number) <= std::numeric_limits<float>::max();
}

}  // namespace stepop

/// Registers a class that has a constructor from `const Config&`, its own part of the config, under
/// the name that a config uses:
/// STEPOP_REGISTER_SCHEDULE(warmup, Warmup, {"Linear, then constant.", {{"steps", "", "..."}}});
#define STEPOP_REGISTER_SCHEDULE(name, Class, ...) \
  STEPOP_REGISTER(                                 \
      ::stepop::schedules(), #name,                \
      [](const ::stepop::Config& params) { return std::make_unique<Class>(params); }, __VA_ARGS__)
