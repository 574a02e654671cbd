#include "runtime/train/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/train/when/duration.h"
#include "runtime/train/when/training_length.h"

namespace stepop {
namespace {

/// A line from 0 to the first number of a schedule, which begins behind it.
class WarmedUp : public Schedule {
 public:
  WarmedUp(std::shared_ptr<const Schedule> schedule, int64_t steps)
      : schedule_(std::move(schedule)), steps_(steps) {}

  double at(int64_t step) const override {
    return step < steps_ ? schedule_->at(0) * part_done(step, steps_)
                         : schedule_->at(step - steps_);
  }
  std::optional<int64_t> fallen_after() const override {
    const auto steps = schedule_->fallen_after();
    return steps ? std::optional(*steps + steps_) : std::nullopt;
  }

 private:
  std::shared_ptr<const Schedule> schedule_;
  int64_t steps_;
};

/// The number of another schedule in the first step of each epoch, for the whole epoch. The
/// schedule begins `begin` steps after the training.
class PerEpoch : public Schedule {
 public:
  PerEpoch(std::shared_ptr<const Schedule> schedule, int64_t epoch, int64_t begin)
      : schedule_(std::move(schedule)), epoch_(epoch), begin_(begin) {}

  double at(int64_t step) const override {
    return schedule_->at(std::max<int64_t>(step - (begin_ + step) % epoch_, 0));
  }
  std::optional<int64_t> fallen_after() const override {
    const auto steps = schedule_->fallen_after();
    if (!steps) return std::nullopt;
    const int64_t into = (begin_ + *steps) % epoch_;
    return into == 0 ? *steps : *steps + epoch_ - into;
  }

 private:
  std::shared_ptr<const Schedule> schedule_;
  int64_t epoch_;  ///< Its steps.
  int64_t begin_;
};

/// Whether the schedule at `path` changes in each epoch alone.
bool is_per_epoch(const Config& config, std::string_view path, const Value& value) {
  if (!value.is_map()) return false;
  const Config params = config.at(path);
  const auto per = params.get(kPer.name, kPer.default_value);
  if (per == "step" || per == "epoch") return per == "epoch";
  throw params.error(kPer.name, fmt::format("expected step or epoch, found \"{}\"", per));
}

/// The length of `warmup`, of a schedule that has one; else 0.
int64_t read_warmup(const Config& config, std::string_view path, const Value& value) {
  const Value* name = value.is_map() ? value.find("class") : nullptr;
  if (name == nullptr || !name->is_text()) return 0;
  for (const auto& registration : schedules().registrations()) {
    const auto& known = registration.about.parameters;
    const bool may_have =
        std::ranges::any_of(known, [](const Parameter& each) { return each.name == kWarmup.name; });
    if (registration.name != name->as_text() || !may_have) continue;
    return read_length_or(config.at(path), kWarmup.name, 0, 0);
  }
  return 0;
}

/// Null without a collector, and while a schedule is being built.
thread_local std::vector<BuiltSchedule>* collected = nullptr;
thread_local StepReads* reads = nullptr;

}  // namespace

ScheduleCollector::ScheduleCollector(std::vector<BuiltSchedule>& schedules)
    : before_(std::exchange(collected, &schedules)) {}

ScheduleCollector::~ScheduleCollector() { collected = before_; }

StepReads::StepReads() : before_(std::exchange(reads, this)) {}

StepReads::~StepReads() { reads = before_; }

void StepReads::note(const char* what) {
  if (reads != nullptr && reads->found_ == nullptr) reads->found_ = what;
}

ScheduleRegistry& schedules() {
  static ScheduleRegistry registry("schedule");
  return registry;
}

Scheduled::Scheduled(const Config& config, std::string_view path) {
  const Value* value = config.peek(path);
  if (value == nullptr || value->is_int() || value->is_float()) {
    value_ = config.get<double>(path);
    return;
  }
  const auto& known = schedules().registrations();
  const bool is_schedule =
      value->is_map() || (value->is_text() && std::any_of(known.begin(), known.end(), [&](auto& r) {
                            return r.name == value->as_text();
                          }));
  if (!is_schedule) {
    std::string names;
    for (const auto& registration : known) {
      if (!registration.about.is_alias) names += (names.empty() ? "" : ", ") + registration.name;
    }
    throw config.error(path, fmt::format("expected a number or a schedule ({}), found {}", names,
                                         value->describe()));
  }
  std::vector<BuiltSchedule>* const outer = std::exchange(collected, nullptr);
  const int64_t begin = LaterBegin::steps();
  const int64_t warmup = read_warmup(config, path, *value);
  const LaterBegin later(warmup);
  std::optional<CountsEpochs> epochs;
  if (is_per_epoch(config, path, *value)) {
    epochs.emplace(LengthScope::find(config.at(path), kPer.name).steps_per_epoch);
  }
  schedule_ = schedules().build(config, path);
  if (warmup > 0) schedule_ = std::make_shared<WarmedUp>(std::move(schedule_), warmup);
  if (epochs) schedule_ = std::make_shared<PerEpoch>(std::move(schedule_), epochs->steps(), begin);
  collected = outer;
  if (outer == nullptr) return;
  outer->push_back({config, std::string(path), schedule_, {}});
  if (epochs) outer->back().short_lengths = epochs->short_lengths();
}

Scheduled::Scheduled(const Config& config, std::string_view path, double fallback)
    : value_(fallback) {
  if (config.has(path)) *this = Scheduled(config, path);
}

const Scheduled& Scheduled::at_least(double minimum, const Config& config,
                                     std::string_view path) const {
  if (!(at(0) >= minimum)) {
    throw config.error(path, fmt::format("expected {} or more, found {}", minimum, at(0)));
  }
  if (fits_float(at(0))) return *this;
  throw config.error(path, fmt::format("expected a finite number, found {}", at(0)));
}

}  // namespace stepop
