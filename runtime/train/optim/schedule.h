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

#include "runtime/core/components/registry.h"
#include "runtime/train/when/training_length.h"

namespace stepop {

/// A number that depends on the training step: a learning rate, the weight of a loss.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// The number for the update after `step` complete training steps; the first update has step 0. A
  /// pure function: a resumed run needs no saved state.
  virtual double at(int64_t step) const = 0;

  /// The number of steps after which the schedule has fallen to its final number. Nothing for a
  /// schedule that never ends, ends with a rise or is meant to stay, such as a warm-up or a
  /// constant part of a chain.
  virtual std::optional<int64_t> fallen_after() const { return std::nullopt; }
};

/// A schedule, and the place in the config from which it was built.
struct BuiltSchedule {
  Config config;
  std::string path;
  std::shared_ptr<const Schedule> schedule;
  /// With `per: epoch`: lengths in steps that are shorter than an epoch.
  std::vector<CountsEpochs::Length> short_lengths;
};

/// Collects the schedules that this thread builds during its lifetime. For nested schedules it
/// collects the outermost one.
class ScheduleCollector {
 public:
  explicit ScheduleCollector(std::vector<BuiltSchedule>& schedules);
  ~ScheduleCollector();
  ScheduleCollector(const ScheduleCollector&) = delete;
  ScheduleCollector& operator=(const ScheduleCollector&) = delete;

 private:
  std::vector<BuiltSchedule>* before_;
};

/// A parameter that a schedule may have besides its own; `Scheduled` reads it.
inline const Parameter kWarmup = {"warmup",
                                  "0",
                                  "before it, a line from 0 to its first number: 500, 2e or 5%",
                                  false,
                                  {.kind = "span"}};

/// A parameter of every schedule; `Scheduled` reads it.
inline const Parameter kPer = {"per",
                               "step",
                               "when it changes: step, or epoch, in the first step of each alone; "
                               "`gamma` is then of an epoch",
                               false,
                               {.kind = "text", .choices = {"step", "epoch"}}};

/// `about` with the parameters that every schedule has.
inline About schedule_about(About about = {}) {
  about.parameters.push_back(kPer);
  return about;
}

/// During its lifetime, what in this thread first uses a number of the host that is another one in
/// the next step: code that is captured as a graph must not, because the graph would repeat what
/// follows from that number. While a second one lives, the first notes nothing.
class StepReads {
 public:
  StepReads();
  ~StepReads();
  StepReads(const StepReads&) = delete;
  StepReads& operator=(const StepReads&) = delete;

  /// `a schedule` or `global_step()`; null for none.
  const char* found() const { return found_; }

  static void note(const char* what);

 private:
  const char* found_ = nullptr;
  StepReads* before_;
};

using ScheduleRegistry = Registry<std::unique_ptr<Schedule>(const Config&)>;
ScheduleRegistry& schedules();

/// A number of a config that may be written as a schedule: `lr: 1e-3`, or
/// `lr: {class: cosine, from: 1e-3, steps: 10000}`. Copies are cheap and share the schedule.
class Scheduled {
 public:
  /// The same number in each step.
  explicit Scheduled(double value) : value_(value) {}
  /// Reads `path`; throws UsageError with the place unless it is a number or a schedule.
  Scheduled(const Config& config, std::string_view path);
  /// The same, with `fallback` for a missing key.
  Scheduled(const Config& config, std::string_view path, double fallback);

  /// As `Schedule::at`.
  double at(int64_t step) const {
    if (!schedule_) return value_;
    StepReads::note("a schedule");
    return schedule_->at(step);
  }
  /// Whether it is a number, and no schedule.
  bool is_fixed() const { return schedule_ == nullptr; }
  /// As `Schedule::fallen_after`.
  std::optional<int64_t> fallen_after() const {
    return schedule_ ? schedule_->fallen_after() : std::nullopt;
  }

  /// Throws UsageError at `path` when the number is below `minimum`, is NaN, or does not fit into a
  /// float32. Only the first number of a schedule is checked.
  const Scheduled& at_least(double minimum, const Config& config, std::string_view path) const;

 private:
  friend ParameterOf<Scheduled>;

  double value_ = 0;
  std::shared_ptr<const Schedule> schedule_;
};

/// A member of a component's `Params`. A range counts by its lowest number, as in `at_least`.
template <>
struct ParameterOf<Scheduled> {
  static Scheduled read(const Config& config, std::string_view path, const Allowed& allowed) {
    const Scheduled value(config, path);
    if (allowed.range.is_limited()) value.at_least(allowed.range.lowest, config, path);
    return value;
  }
  static Value shown(const Scheduled& value) { return Value(value.value_); }
  static std::string kind() { return "schedule"; }
};

/// The part of `steps` that is complete at `step`, in [0, 1].
inline double part_done(int64_t step, int64_t steps) {
  return static_cast<double>(std::clamp<int64_t>(step, 0, steps)) / static_cast<double>(steps);
}

/// Whether a number is finite as a float32, in which most weights are computed.
inline bool fits_float(double number) {
  return std::abs(number) <= std::numeric_limits<float>::max();
}

}  // namespace stepop

/// Registers a class with a constructor from its `Params`, under the name that a config uses:
/// STEPOP_REGISTER_SCHEDULE(warmup, Warmup, {"Linear, then constant."}); see `Parameters`.
#define STEPOP_REGISTER_SCHEDULE(name, Class, ...)                                            \
  STEPOP_REGISTER(                                                                            \
      ::stepop::schedules(), #name,                                                           \
      [](const ::stepop::Config& params) { return ::stepop::make_component<Class>(params); }, \
      ::stepop::schedule_about(::stepop::about_class<Class>(__VA_ARGS__)))
