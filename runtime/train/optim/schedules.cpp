// The schedules of configs, each a closed form of the step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/duration.h"
#include "runtime/train/when/training_length.h"

namespace stepop {
namespace {

std::optional<int64_t> if_falls(double from, double to, int64_t end) {
  return std::abs(to) < std::abs(from) ? std::optional(end) : std::nullopt;
}

class Constant : public Schedule {
 public:
  explicit Constant(const Config& params) : value_(params.get<double>("value")) {}
  double at(int64_t) const override { return value_; }

 private:
  double value_;
};

/// A line from one number to another; constant before and after the line.
class Linear : public Schedule {
 public:
  explicit Linear(const Config& params) : Linear(params, read_length_or(params, "start", 0, 0)) {}

  double at(int64_t step) const override {
    if (step >= start_ + steps_) return to_;
    return from_ + (to_ - from_) * part_done(step - start_, steps_);
  }

  std::optional<int64_t> fallen_after() const override {
    return if_falls(from_, to_, start_ + steps_);
  }

 protected:
  Linear(double from, double to, int64_t start, int64_t steps)
      : from_(from), to_(to), start_(start), steps_(steps) {}

 private:
  Linear(const Config& params, int64_t start)
      : Linear(params.get<double>("from"), params.get<double>("to"), start,
               read_length(params, "steps", 1, start)) {}

  double from_;
  double to_;
  int64_t start_;
  int64_t steps_;
};

class Warmup : public Linear {
 public:
  explicit Warmup(const Config& params)
      : Linear(params.get("from", 0.0), params.get<double>("to"), 0,
               read_length(params, "steps", 1)) {}
};

/// Half a cosine (SGDR, Loshchilov and Hutter 2017, without restarts); constant before and after
/// it.
class Cosine : public Schedule {
 public:
  explicit Cosine(const Config& params)
      : from_(params.get<double>("from")),
        to_(params.get("to", 0.0)),
        start_(read_length_or(params, "start", 0, 0)),
        steps_(read_length(params, "steps", 1, start_)) {}

  double at(int64_t step) const override {
    step = std::max<int64_t>(step - start_, 0);
    if (step >= steps_) return to_;
    return to_ + (from_ - to_) * 0.5 * (1 + std::cos(std::numbers::pi * part_done(step, steps_)));
  }

  std::optional<int64_t> fallen_after() const override {
    return if_falls(from_, to_, start_ + steps_);
  }

 private:
  double from_;
  double to_;
  int64_t start_;
  int64_t steps_;
};

/// A number that falls by the same factor at every step. With `to` and `steps` it stops at `to`.
class Exponential : public Schedule {
 public:
  explicit Exponential(const Config& params) : from_(params.get<double>("from")) {
    const bool has_gamma = params.has("gamma");
    if (has_gamma == params.has("to") || params.has("to") != params.has("steps")) {
      throw params.error("", "expected \"gamma\", or \"to\" and \"steps\"");
    }
    if (has_gamma) {
      gamma_ = params.get<double>("gamma");
      each_ = static_cast<double>(CountsEpochs::steps());
      return;
    }
    to_ = params.get<double>("to");
    steps_ = read_length(params, "steps", 1);
    if (!(from_ * to_ > 0)) {
      throw params.error("to", fmt::format("from {} to {}: no factor leads there; both have to be "
                                           "above 0, or both below",
                                           from_, to_));
    }
    gamma_ = std::pow(to_ / from_, 1 / static_cast<double>(steps_));
  }

  double at(int64_t step) const override {
    if (steps_ > 0 && step >= steps_) return to_;
    return from_ * std::pow(gamma_, static_cast<double>(step) / each_);
  }

  std::optional<int64_t> fallen_after() const override {
    return steps_ > 0 ? if_falls(from_, to_, steps_) : std::nullopt;
  }

 private:
  double from_;
  double to_ = 0;
  double gamma_ = 1;
  double each_ = 1;    ///< The steps of one factor.
  int64_t steps_ = 0;  ///< 0: without an end.
};

class Polynomial : public Schedule {
 public:
  explicit Polynomial(const Config& params)
      : from_(params.get<double>("from")),
        to_(params.get("to", 0.0)),
        power_(params.get("power", 1.0)),
        steps_(read_length(params, "steps", 1)) {
    if (!(power_ > 0))
      throw params.error("power", fmt::format("expected more than 0, found {}", power_));
  }

  double at(int64_t step) const override {
    return to_ + (from_ - to_) * std::pow(1 - part_done(step, steps_), power_);
  }

  std::optional<int64_t> fallen_after() const override { return if_falls(from_, to_, steps_); }

 private:
  double from_;
  double to_;
  double power_;
  int64_t steps_;
};

/// Smith and Topin 2018, with the phases of torch.optim.lr_scheduler.OneCycleLR.
class OneCycle : public Schedule {
 public:
  explicit OneCycle(const Config& params)
      : max_(params.get<double>("max")),
        first_(max_ / params.get("div_factor", 25.0)),
        last_(first_ / params.get("final_div_factor", 1e4)),
        each_(CountsEpochs::steps()),
        steps_(read_length(params, "steps", 2)),
        rise_(params.get("pct_start", 0.3) * static_cast<double>(steps_) -
              static_cast<double>(each_)),
        is_linear_(params.get("anneal", "cos") == "linear") {
    const auto anneal = params.get("anneal", "cos");
    if (anneal != "cos" && anneal != "linear") {
      throw params.error("anneal", fmt::format("expected cos or linear, found {}", anneal));
    }
    if (!(rise_ >= 0) || rise_ >= static_cast<double>(steps_ - each_)) {
      const char* unit = CountsEpochs::epoch() ? "epoch" : "step";
      throw params.error("pct_start",
                         fmt::format("the rise has to be one {0} or more, and to end before the "
                                     "last {0}",
                                     unit));
    }
  }

  double at(int64_t step) const override {
    const auto end = static_cast<double>(steps_ - each_);
    const double place = std::min(static_cast<double>(step), end);
    if (place <= rise_) return between(first_, max_, rise_ > 0 ? place / rise_ : 1);
    return between(max_, last_, (place - rise_) / (end - rise_));
  }

  std::optional<int64_t> fallen_after() const override { return steps_ - each_; }

 private:
  double between(double from, double to, double part) const {
    if (is_linear_) return from + (to - from) * part;
    return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * part));
  }

  double max_;
  double first_;
  double last_;
  int64_t each_;  ///< Steps between two numbers.
  int64_t steps_;
  double rise_;  ///< The step with the highest number.
  bool is_linear_;
};

/// The Transformer's schedule (Vaswani et al. 2017) after its warm-up.
class InverseSqrt : public Schedule {
 public:
  explicit InverseSqrt(const Config& params)
      : from_(params.get<double>("from")),
        steps_(static_cast<double>(read_length(params, "steps", 1))) {}

  double at(int64_t step) const override {
    return from_ * std::sqrt(steps_ / (steps_ + static_cast<double>(step)));
  }

 private:
  double from_;
  double steps_;
};

/// The decay of weight averages in ema_pytorch: 1 - (1 + n / inv_gamma)^-power, n steps after
/// `update_after_step`, within [min, max]. Until then the averages equal the weights; with
/// `copies_first` also in the first update behind it. In steps that are no multiple of
/// `update_every` the decay is 1, which changes no average.
class PowerLaw : public Schedule {
 public:
  explicit PowerLaw(const Config& params)
      : min_(params.get("min", 0.0)),
        max_(params.get("max", 0.9999)),
        power_(params.get("power", 2.0 / 3)),
        inv_gamma_(params.get("inv_gamma", 1.0)),
        each_(CountsEpochs::steps()),
        after_(read_length_or(params, "update_after_step", 0, 100)),
        every_(params.get_at_least("update_every", 1, 1) * each_),
        last_copy_(after_ + (params.get("copies_first", false) ? every_ : 0)) {
    if (!(power_ > 0))
      throw params.error("power", fmt::format("expected more than 0, found {}", power_));
    if (!(inv_gamma_ > 0)) {
      throw params.error("inv_gamma", fmt::format("expected more than 0, found {}", inv_gamma_));
    }
    if (!(min_ >= 0 && min_ <= max_ && max_ < 1)) {
      throw params.error("max", fmt::format("expected 0 <= min <= max < 1, found the min {} and "
                                            "the max {}",
                                            min_, max_));
    }
  }

  double at(int64_t step) const override {
    if (step % every_ != 0) return 1;
    if (step <= last_copy_) return 0;
    const auto n = static_cast<double>(step - after_) / static_cast<double>(each_);
    return std::clamp(1 - std::pow(1 + n / inv_gamma_, -power_), min_, max_);
  }

 private:
  double min_;
  double max_;
  double power_;
  double inv_gamma_;
  int64_t each_;  ///< The steps of one n.
  int64_t after_;
  int64_t every_;
  int64_t last_copy_;
};

STEPOP_REGISTER_SCHEDULE(constant, Constant,
                         {"The same number at every step.", {{"value", "", "the number"}}});

STEPOP_REGISTER_SCHEDULE(warmup, Warmup,
                         {"A line from a small number, then constant.",
                          {{"from", "0", "the number at step 0"},
                           {"to", "", "the number from step `steps` on"},
                           {"steps", "", "length of the line: 500, 2e or 5%"}}});

STEPOP_REGISTER_SCHEDULE(linear, Linear,
                         {"A line between two numbers, constant before and after it.",
                          {{"from", "", "the number up to step `start`"},
                           {"to", "", "the number from step `start` + `steps` on"},
                           {"start", "0", "the training step where the line begins"},
                           {"steps", "", "length of the line: 5000, 20e, 95% or end"},
                           kWarmup}});

STEPOP_REGISTER_SCHEDULE(cosine, Cosine,
                         {"Half a cosine from one number to another, constant before and after it.",
                          {{"from", "", "the number up to step `start`"},
                           {"to", "0", "the number from step `start` + `steps` on"},
                           {"start", "0", "the training step where the cosine begins"},
                           {"steps", "", "length of the cosine: 5000, 20e, 95% or end"},
                           kWarmup}});

STEPOP_REGISTER_SCHEDULE(exponential, Exponential,
                         {"Multiplied by a factor at every step.",
                          {{"from", "", "the number at step 0"},
                           {"gamma", "none", "the factor"},
                           {"to", "none", "instead of `gamma`: the number from step `steps` on"},
                           {"steps", "none", "with `to`: length of the fall: 5000, 20e, end"},
                           kWarmup}});

STEPOP_REGISTER_SCHEDULE(polynomial, Polynomial,
                         {"A power of what is left of the steps, then constant.",
                          {{"from", "", "the number at step 0"},
                           {"to", "0", "the number from step `steps` on"},
                           {"power", "1", "of the part of the steps that is left"},
                           {"steps", "", "length of the fall: 5000, 20e, 95% or end"},
                           kWarmup}});

STEPOP_REGISTER_SCHEDULE(one_cycle, OneCycle,
                         {"A rise and a longer fall (Smith and Topin 2018), as torch.optim's "
                          "OneCycleLR; the momentum stays.",
                          {{"max", "", "the highest number"},
                           {"steps", "", "length of both: 5000, 20e or end; constant after them"},
                           {"pct_start", "0.3", "the part of the steps in which it rises"},
                           {"div_factor", "25", "the first number is max / div_factor"},
                           {"final_div_factor", "1e4",
                            "the last number is the first / final_div_factor"},
                           {"anneal", "cos", "the form of both: cos or linear"}}});

STEPOP_REGISTER_SCHEDULE(
    inverse_sqrt, InverseSqrt,
    {"Falls with the square root of the step, as after the warm-up of a Transformer.",
     {{"from", "", "the number at step 0"},
      {"steps", "", "of the warm-up before it: the number is from / sqrt(2) after as many"},
      kWarmup}});

STEPOP_REGISTER_SCHEDULE(
    power_law, PowerLaw,
    {"The decay of averaged weights that grows with the steps, as in ema_pytorch: for ema/decay.",
     {{"max", "0.9999", "the highest decay"},
      {"min", "0", "the lowest decay after `update_after_step`"},
      {"power", "0.6667", "of the steps; 0.75 for a training of many"},
      {"inv_gamma", "1", "how many steps count as one"},
      {"update_after_step", "100", "up to this step the averages are the weights"},
      {"update_every", "1", "in other steps than its multiples the averages stay as they are"},
      {"copies_first", "false",
       "the first update after `update_after_step` copies the weights, as in ema_pytorch up to "
       "0.6.3"}}});

}  // namespace
}  // namespace stepop
