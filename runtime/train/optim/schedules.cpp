// The schedules of configs, each a closed form of the step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/length_parameter.h"
#include "runtime/train/when/training_length.h"

namespace stepop {
namespace {

std::optional<int64_t> if_falls(double from, double to, int64_t end) {
  return std::abs(to) < std::abs(from) ? std::optional(end) : std::nullopt;
}

class Constant : public Schedule {
 public:
  struct Params {
    double value = 0;

    void declare(Parameters& p) { p.require("value", value, "the number"); }
  };

  explicit Constant(const Params& params) : value_(params.value) {}
  double at(int64_t) const override { return value_; }

 private:
  double value_;
};

/// A line from one number to another; constant before and after the line.
class Linear : public Schedule {
 public:
  struct Params {
    double from = 0;
    double to = 0;
    int64_t start = 0;
    int64_t steps = 1;

    void declare(Parameters& p) {
      p.require("from", from, "the number up to step `start`");
      p.require("to", to, "the number from step `start` + `steps` on");
      add_length(p, "start", start, 0, "the training step where the line begins");
      require_length(p, "steps", steps, 1, "length of the line: 5000, 20e, 95% or end", start);
      p.describe(kWarmup);
    }
  };

  explicit Linear(const Params& params) : p_(params) {}

  double at(int64_t step) const override {
    if (step >= p_.start + p_.steps) return p_.to;
    return p_.from + (p_.to - p_.from) * part_done(step - p_.start, p_.steps);
  }

  std::optional<int64_t> fallen_after() const override {
    return if_falls(p_.from, p_.to, p_.start + p_.steps);
  }

 private:
  Params p_;
};

class Warmup : public Linear {
 public:
  struct Params {
    double from = 0;
    double to = 0;
    int64_t steps = 1;

    void declare(Parameters& p) {
      p.add("from", from, "the number at step 0");
      p.require("to", to, "the number from step `steps` on");
      require_length(p, "steps", steps, 1, "length of the line: 500, 2e or 5%");
    }
  };

  explicit Warmup(const Params& params)
      : Linear({.from = params.from, .to = params.to, .steps = params.steps}) {}
};

/// Half a cosine (SGDR, Loshchilov and Hutter 2017, without restarts); constant before and after
/// it.
class Cosine : public Schedule {
 public:
  struct Params {
    double from = 0;
    double to = 0;
    int64_t start = 0;
    int64_t steps = 1;

    void declare(Parameters& p) {
      p.require("from", from, "the number up to step `start`");
      p.add("to", to, "the number from step `start` + `steps` on");
      add_length(p, "start", start, 0, "the training step where the cosine begins");
      require_length(p, "steps", steps, 1, "length of the cosine: 5000, 20e, 95% or end", start);
      p.describe(kWarmup);
    }
  };

  explicit Cosine(const Params& params) : p_(params) {}

  double at(int64_t step) const override {
    step = std::max<int64_t>(step - p_.start, 0);
    if (step >= p_.steps) return p_.to;
    const double part = part_done(step, p_.steps);
    return p_.to + (p_.from - p_.to) * 0.5 * (1 + std::cos(std::numbers::pi * part));
  }

  std::optional<int64_t> fallen_after() const override {
    return if_falls(p_.from, p_.to, p_.start + p_.steps);
  }

 private:
  Params p_;
};

/// A number that falls by the same factor at every step. With `to` and `steps` it stops at `to`.
class Exponential : public Schedule {
 public:
  struct Params {
    double from = 0;
    std::optional<double> gamma;
    std::optional<double> to;
    int64_t steps = 0;  ///< 0: without an end.

    void declare(Parameters& p) {
      p.require("from", from, "the number at step 0");
      p.add("gamma", gamma, "the factor");
      p.add("to", to, "instead of `gamma`: the number from step `steps` on");
      add_optional_length(p, "steps", steps, 1, "with `to`: length of the fall: 5000, 20e, end");
      p.describe(kWarmup);
    }
  };

  Exponential(const Params& params, const Config& config)
      : from_(params.from), steps_(params.steps) {
    if (params.gamma.has_value() == params.to.has_value() ||
        params.to.has_value() != (steps_ > 0)) {
      throw config.error("", "expected \"gamma\", or \"to\" and \"steps\"");
    }
    if (params.gamma) {
      gamma_ = *params.gamma;
      each_ = static_cast<double>(CountsEpochs::steps());
      return;
    }
    to_ = *params.to;
    if (!(from_ * to_ > 0)) {
      throw config.error("to", fmt::format("from {} to {}: no factor leads there; both have to be "
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
  double each_ = 1;  ///< The steps of one factor.
  int64_t steps_;
};

class Polynomial : public Schedule {
 public:
  struct Params {
    double from = 0;
    double to = 0;
    double power = 1;
    int64_t steps = 1;

    void declare(Parameters& p) {
      p.require("from", from, "the number at step 0");
      p.add("to", to, "the number from step `steps` on");
      p.add("power", power, "of the part of the steps that is left", above(0));
      require_length(p, "steps", steps, 1, "length of the fall: 5000, 20e, 95% or end");
      p.describe(kWarmup);
    }
  };

  explicit Polynomial(const Params& params) : p_(params) {}

  double at(int64_t step) const override {
    return p_.to + (p_.from - p_.to) * std::pow(1 - part_done(step, p_.steps), p_.power);
  }

  std::optional<int64_t> fallen_after() const override {
    return if_falls(p_.from, p_.to, p_.steps);
  }

 private:
  Params p_;
};

/// Smith and Topin 2018, with the phases of torch.optim.lr_scheduler.OneCycleLR.
class OneCycle : public Schedule {
 public:
  struct Params {
    double max = 0;
    int64_t steps = 2;
    double pct_start = 0.3;
    double div_factor = 25;
    double final_div_factor = 1e4;
    std::string anneal = "cos";

    void declare(Parameters& p) {
      p.require("max", max, "the highest number");
      require_length(p, "steps", steps, 2, "length of both: 5000, 20e or end; constant after them");
      p.add("pct_start", pct_start, "the part of the steps in which it rises");
      p.add("div_factor", div_factor, "the first number is max / div_factor");
      p.add("final_div_factor", final_div_factor,
            "the last number is the first / final_div_factor");
      p.add("anneal", anneal, "the form of both: cos or linear", one_of({"cos", "linear"}));
    }
  };

  OneCycle(const Params& params, const Config& config)
      : max_(params.max),
        first_(max_ / params.div_factor),
        last_(first_ / params.final_div_factor),
        each_(CountsEpochs::steps()),
        steps_(params.steps),
        rise_(params.pct_start * static_cast<double>(steps_) - static_cast<double>(each_)),
        is_linear_(params.anneal == "linear") {
    if (!(rise_ >= 0) || rise_ >= static_cast<double>(steps_ - each_)) {
      const char* unit = CountsEpochs::epoch() ? "epoch" : "step";
      throw config.error("pct_start",
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
  struct Params {
    double from = 0;
    int64_t steps = 1;

    void declare(Parameters& p) {
      p.require("from", from, "the number at step 0");
      require_length(p, "steps", steps, 1,
                     "of the warm-up before it: the number is from / sqrt(2) after as many");
      p.describe(kWarmup);
    }
  };

  explicit InverseSqrt(const Params& params)
      : from_(params.from), steps_(static_cast<double>(params.steps)) {}

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
  struct Params {
    double max = 0.9999;
    double min = 0;
    double power = 2.0 / 3;
    double inv_gamma = 1;
    int64_t update_after_step = 100;
    int64_t update_every = 1;
    bool copies_first = false;

    void declare(Parameters& p) {
      p.add("max", max, "the highest decay", at_least(0).below(1));
      p.add("min", min, "the lowest decay after `update_after_step`", at_least(0).below(1));
      p.add("power", power, "of the steps; 0.75 for a training of many", above(0));
      p.add("inv_gamma", inv_gamma, "how many steps count as one", above(0));
      add_length(p, "update_after_step", update_after_step, 0,
                 "up to this step the averages are the weights");
      p.add("update_every", update_every,
            "in other steps than its multiples the averages stay as they are", at_least(1));
      p.add("copies_first", copies_first,
            "the first update after `update_after_step` copies the weights, as in ema_pytorch up "
            "to 0.6.3");
    }
  };

  PowerLaw(const Params& params, const Config& config) : p_(params), each_(CountsEpochs::steps()) {
    p_.update_every *= each_;
    last_copy_ = p_.update_after_step + (p_.copies_first ? p_.update_every : 0);
    if (p_.min > p_.max) {
      throw config.error("max", fmt::format("expected 0 <= min <= max < 1, found the min {} and "
                                            "the max {}",
                                            p_.min, p_.max));
    }
  }

  double at(int64_t step) const override {
    if (step % p_.update_every != 0) return 1;
    if (step <= last_copy_) return 0;
    const auto n = static_cast<double>(step - p_.update_after_step) / static_cast<double>(each_);
    return std::clamp(1 - std::pow(1 + n / p_.inv_gamma, -p_.power), p_.min, p_.max);
  }

 private:
  Params p_;
  int64_t each_;  ///< The steps of one n.
  int64_t last_copy_;
};

STEPOP_REGISTER_SCHEDULE(constant, Constant, {"The same number at every step."});

STEPOP_REGISTER_SCHEDULE(warmup, Warmup, {"A line from a small number, then constant."});

STEPOP_REGISTER_SCHEDULE(linear, Linear,
                         {"A line between two numbers, constant before and after it."});

STEPOP_REGISTER_SCHEDULE(
    cosine, Cosine, {"Half a cosine from one number to another, constant before and after it."});

STEPOP_REGISTER_SCHEDULE(exponential, Exponential, {"Multiplied by a factor at every step."});

STEPOP_REGISTER_SCHEDULE(polynomial, Polynomial,
                         {"A power of what is left of the steps, then constant."});

STEPOP_REGISTER_SCHEDULE(one_cycle, OneCycle,
                         {"A rise and a longer fall (Smith and Topin 2018), as torch.optim's "
                          "OneCycleLR; the momentum stays."});

STEPOP_REGISTER_SCHEDULE(
    inverse_sqrt, InverseSqrt,
    {"Falls with the square root of the step, as after the warm-up of a Transformer."});

STEPOP_REGISTER_SCHEDULE(
    power_law, PowerLaw,
    {"The decay of averaged weights that grows with the steps, as in ema_pytorch: for ema/decay."});

}  // namespace
}  // namespace stepop
