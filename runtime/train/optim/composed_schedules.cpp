// Schedules that are made of other schedules.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/duration.h"
#include "runtime/train/when/length_parameter.h"
#include "runtime/train/when/training_length.h"

namespace stepop {
namespace {

class Chain : public Schedule {
 public:
  struct Params {
    void declare(Parameters& p) {
      p.describe({"parts",
                  "",
                  "list of {schedule: ..., steps: N}; the last has no steps",
                  false,
                  {.kind = "list of map"}});
    }
  };

  Chain(const Params& /*read here*/, const Config& params) {
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
      const LaterBegin later(start);
      parts_.push_back({start, Scheduled(part, "schedule")});
      if (i + 1 == count) {
        if (!part.has("steps")) break;
        throw part.error("steps", "the last part has no end: remove its steps");
      }
      start += read_length(part, "steps", 1, start);
    }
  }

  double at(int64_t step) const override {
    size_t i = parts_.size() - 1;
    while (i > 0 && step < parts_[i].start) --i;
    return parts_[i].schedule.at(step - parts_[i].start);
  }

  std::optional<int64_t> fallen_after() const override {
    const Part& last = parts_.back();
    const auto steps = last.schedule.fallen_after();
    return steps ? std::optional(last.start + *steps) : std::nullopt;
  }

 private:
  struct Part {
    int64_t start;
    Scheduled schedule;
  };
  std::vector<Part> parts_;
};

/// Multiplies the start of another schedule by a ramp.
class Ramp : public Schedule {
 public:
  struct Params {
    int64_t steps = 1;
    double from = 0;

    void declare(Parameters& p) {
      p.describe({"schedule", "", "a number or a schedule", false, {.kind = "schedule"}});
      require_length(p, "steps", steps, 1, "until it counts in full, in training steps");
      p.add("from", from, "the part of it at step 0, from 0 to 1", at_least(0).at_most(1));
    }
  };

  Ramp(const Params& params, const Config& config)
      : schedule_(config, "schedule"), from_(params.from), steps_(params.steps) {}

  double at(int64_t step) const override {
    const double number = schedule_.at(step);
    return step >= steps_ ? number : number * (from_ + (1 - from_) * part_done(step, steps_));
  }

  std::optional<int64_t> fallen_after() const override {
    const auto steps = schedule_.fallen_after();
    return steps ? std::optional(std::max(*steps, steps_)) : std::nullopt;
  }

 private:
  Scheduled schedule_;
  double from_;
  int64_t steps_;
};

STEPOP_REGISTER_SCHEDULE(chain, Chain,
                         {"Schedules one after another, each with its own count of steps, as "
                          "torch.optim's SequentialLR."});

STEPOP_REGISTER_SCHEDULE(ramp, Ramp,
                         {"A warm-up of another schedule, which keeps its own count of steps."});

}  // namespace
}  // namespace stepop
