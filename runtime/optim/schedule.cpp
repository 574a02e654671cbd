#include "runtime/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

namespace stepop {

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
    for (const auto& registration : known) names += (names.empty() ? "" : ", ") + registration.name;
    throw config.error(path, fmt::format("expected a number or a schedule ({}), found {}", names,
                                         value->describe()));
  }
  schedule_ = schedules().build(config, path);
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

// The schedules that a config names, each a closed form of the step.
namespace {

/// The part of `steps` that is over at `step`, in [0, 1].
double progress(int64_t step, int64_t steps) {
  return static_cast<double>(std::clamp<int64_t>(step, 0, steps)) / static_cast<double>(steps);
}

class Constant : public Schedule {
 public:
  explicit Constant(const Config& params) : value_(params.get<double>("value")) {}
  double at(int64_t) const override { return value_; }

 private:
  double value_;
};

/// A line from one number to another; constant before and after it.
class Linear : public Schedule {
 public:
  explicit Linear(const Config& params)
      : Linear(params.get<double>("from"), params.get<double>("to"),
               params.get_at_least("start", 0, 0), params.get_at_least("steps", 1)) {}

  double at(int64_t step) const override {
    if (step >= start_ + steps_) return to_;
    return from_ + (to_ - from_) * progress(step - start_, steps_);
  }

 protected:
  Linear(double from, double to, int64_t start, int64_t steps)
      : from_(from), to_(to), start_(start), steps_(steps) {}

 private:
  double from_;
  double to_;
  int64_t start_;
  int64_t steps_;
};

class Warmup : public Linear {
 public:
  explicit Warmup(const Config& params)
      : Linear(params.get("from", 0.0), params.get<double>("to"), 0,
               params.get_at_least("steps", 1)) {}
};

class Step : public Schedule {
 public:
  explicit Step(const Config& params)
      : from_(params.get<double>("from")), factor_(params.get("factor", 0.1)) {
    const bool has_every = params.has("every");
    const bool has_at = params.has("at");
    if (has_every == has_at) {
      throw params.error("", fmt::format("expected \"every\" or \"at\", found {}",
                                         has_every ? "both" : "neither"));
    }
    if (has_every) {
      every_ = params.get_at_least("every", 1);
    } else {
      at_ = params.get<std::vector<int64_t>>("at");
    }
    for (size_t i = 0; i < at_.size(); ++i) {
      const int64_t before = i == 0 ? -1 : at_[i - 1];
      if (at_[i] > before) continue;
      throw params.error("at", fmt::format("expected steps in ascending order, found {} {}", at_[i],
                                           i == 0 ? "first" : fmt::format("after {}", before)));
    }
  }

  double at(int64_t step) const override {
    const int64_t drops =
        every_ > 0 ? step / every_ : std::upper_bound(at_.begin(), at_.end(), step) - at_.begin();
    return from_ * std::pow(factor_, static_cast<double>(drops));
  }

 private:
  double from_;
  double factor_;
  int64_t every_ = 0;
  std::vector<int64_t> at_;
};

/// Half a cosine (SGDR, Loshchilov and Hutter 2017, without restarts); constant after it.
class Cosine : public Schedule {
 public:
  explicit Cosine(const Config& params)
      : from_(params.get<double>("from")),
        to_(params.get("to", 0.0)),
        steps_(params.get_at_least("steps", 1)) {}

  double at(int64_t step) const override {
    if (step >= steps_) return to_;
    return to_ + (from_ - to_) * 0.5 * (1 + std::cos(std::numbers::pi * progress(step, steps_)));
  }

 private:
  double from_;
  double to_;
  int64_t steps_;
};

class Chain : public Schedule {
 public:
  explicit Chain(const Config& params) {
    params.has("parts");
    const Value* parts = params.peek("parts");
    if (parts == nullptr || !parts->is_list() || parts->as_list().empty()) {
      throw params.error("parts",
                         fmt::format("expected a list of {{schedule: ..., steps: N}}, found {}",
                                     parts == nullptr ? "nothing" : parts->describe()));
    }
    const size_t count = parts->as_list().size();
    int64_t start = 0;
    for (size_t i = 0; i < count; ++i) {
      const Config part = params.at(fmt::format("parts/{}", i));
      parts_.push_back({start, Scheduled(part, "schedule")});
      if (i + 1 == count) {
        if (!part.has("steps")) break;
        throw part.error("steps", "the last part has no end: remove its steps");
      }
      start += part.get_at_least("steps", 1);
    }
  }

  double at(int64_t step) const override {
    size_t i = parts_.size() - 1;
    while (i > 0 && step < parts_[i].start) --i;
    return parts_[i].schedule.at(step - parts_[i].start);
  }

 private:
  struct Part {
    int64_t start;
    Scheduled schedule;
  };
  std::vector<Part> parts_;
};

STEPOP_REGISTER_SCHEDULE(constant, Constant,
                         {"The same number at every step.", {{"value", "", "the number"}}});

STEPOP_REGISTER_SCHEDULE(warmup, Warmup,
                         {"A line from a small number, then constant.",
                          {{"from", "0", "the number at step 0"},
                           {"to", "", "the number from step `steps` on"},
                           {"steps", "", "length of the line in training steps"}}});

STEPOP_REGISTER_SCHEDULE(linear, Linear,
                         {"A line between two numbers, constant before and after it.",
                          {{"from", "", "the number up to step `start`"},
                           {"to", "", "the number from step `start` + `steps` on"},
                           {"start", "0", "the training step where the line begins"},
                           {"steps", "", "length of the line in training steps"}}});

STEPOP_REGISTER_SCHEDULE(step, Step,
                         {"Multiplied by a factor now and then.",
                          {{"from", "", "the number at step 0"},
                           {"factor", "0.1", "what it is multiplied by"},
                           {"every", "none", "training steps between two drops"},
                           {"at", "none", "instead of `every`: the list of steps of the drops"}}});

STEPOP_REGISTER_SCHEDULE(cosine, Cosine,
                         {"Half a cosine from one number to another, then constant.",
                          {{"from", "", "the number at step 0"},
                           {"to", "0", "the number from step `steps` on"},
                           {"steps", "", "length of the fall in training steps"}}});

STEPOP_REGISTER_SCHEDULE(chain, Chain,
                         {"Schedules one after another, each with its own count of steps.",
                          {{"parts", "",
                            "list of {schedule: ..., steps: N}; the last has no steps"}}});

}  // namespace
}  // namespace stepop
