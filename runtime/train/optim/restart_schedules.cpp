// Schedules that may restart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/duration.h"
#include "runtime/train/when/length_parameter.h"

namespace stepop {
namespace {

/// The steps in which a schedule restarts, each time at its first number times a weight.
class Restarts {
 public:
  struct Begin {
    int64_t step;
    double weight;
    size_t count;  ///< Restarts so far.
  };

  struct Params {
    std::vector<int64_t> restarts;
    std::optional<std::vector<double>> weights;

    void declare(Parameters& p, std::string_view about) {
      add_optional_lengths(p, "restarts", restarts, about);
      p.add("weights", weights, "list of what `from` is multiplied by at restarts, else 1");
    }
  };

  Restarts(const Params& params, const Config& config) {
    const std::vector<int64_t>& steps = params.restarts;
    check_ascending(steps, config, "restarts");
    const auto weights = params.weights.value_or(std::vector<double>(steps.size(), 1));
    if (weights.size() != steps.size()) {
      throw config.error("weights", fmt::format("expected {}, one for each of restarts, found {}",
                                                counted(steps.size(), "number"), weights.size()));
    }
    for (size_t i = 0; i < steps.size(); ++i) begins_.push_back({steps[i], weights[i], i + 1});
  }

  /// The last restart up to `step`; step 0 and weight 1 before the first restart.
  Begin last(int64_t step) const {
    const auto next =
        std::upper_bound(begins_.begin(), begins_.end(), step,
                         [](int64_t value, const Begin& begin) { return value < begin.step; });
    return next == begins_.begin() ? Begin{0, 1, 0} : *std::prev(next);
  }

  size_t size() const { return begins_.size(); }
  /// The last of all restarts; there must be at least one.
  const Begin& end() const { return begins_.back(); }

  static void check_ascending(const std::vector<int64_t>& steps, const Config& params,
                              const char* key, bool may_repeat = false) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const int64_t before = i == 0 ? -1 : steps[i - 1];
      if (steps[i] > before || (may_repeat && steps[i] == before)) continue;
      throw params.error(key,
                         fmt::format("expected steps in ascending order, found {} {}", steps[i],
                                     i == 0 ? "first" : fmt::format("after {}", before)));
    }
  }

 private:
  std::vector<Begin> begins_;
};

class Step : public Schedule {
 public:
  struct Params {
    double from = 0;
    double factor = 0.1;
    int64_t every = 0;  ///< 0: `at` has the steps.
    std::vector<int64_t> at;
    Restarts::Params restarts;

    void declare(Parameters& p) {
      p.require("from", from, "the number at step 0");
      p.add("factor", factor, "what it is multiplied by");
      add_optional_length(p, "every", every, 1, "training steps between two drops");
      add_optional_lengths(p, "at", at,
                           "instead of `every`: the list of steps of the drops; a step that "
                           "stands twice drops twice");
      restarts.declare(p, "list of steps in which it is `from` again");
      p.describe(kWarmup);
    }
  };

  Step(const Params& params, const Config& config)
      : from_(params.from),
        factor_(params.factor),
        restarts_(params.restarts, config),
        every_(params.every),
        at_(params.at) {
    if (config.has("every") == config.has("at")) {
      throw config.error("", fmt::format("expected \"every\" or \"at\", found {}",
                                         every_ > 0 ? "both" : "neither"));
    }
    Restarts::check_ascending(at_, config, "at", /*may_repeat=*/true);
  }

  double at(int64_t step) const override {
    const Restarts::Begin begin = restarts_.last(step);
    const int64_t drops =
        every_ > 0 ? (step - begin.step) / every_
                   : drops_until(step) - (begin.count == 0 ? 0 : drops_until(begin.step));
    return from_ * begin.weight * std::pow(factor_, static_cast<double>(drops));
  }

 private:
  int64_t drops_until(int64_t step) const {
    return std::upper_bound(at_.begin(), at_.end(), step) - at_.begin();
  }

  double from_;
  double factor_;
  Restarts restarts_;
  int64_t every_;
  std::vector<int64_t> at_;
};

/// SGDR (Loshchilov and Hutter 2017).
class CosineRestarts : public Schedule {
 public:
  struct Params {
    double from = 0;
    double to = 0;
    int64_t longer = 1;
    double lower = 1;
    Restarts::Params restarts;

    void declare(Parameters& p) {
      p.require("from", from, "the number at step 0");
      p.add("to", to, "the number before each restart");
      p.describe({"steps",
                  "",
                  "training steps of a fall; with `restarts` also a list, of each fall",
                  false,
                  {.kind = "span | list of span"}});
      p.add("longer", longer,
            "how many times longer each period is than the one before, an integer",
            at_least(1).at_most(1000));
      p.add("lower", lower, "what the height, `from` - `to`, is multiplied by at each restart");
      restarts.declare(p,
                       "list of steps in which it begins anew; between a fall and the next "
                       "restart it is `to`");
      p.describe(kWarmup);
    }
  };

  CosineRestarts(const Params& own, const Config& params)
      : from_(own.from),
        to_(own.to),
        restarts_(own.restarts, params),
        longer_(own.longer),
        lower_(own.lower) {
    if (restarts_.size() == 0) {
      steps_.push_back(read_length(params, "steps", 1));
      return;
    }
    for (const char* key : {"longer", "lower"}) {
      if (!params.has(key)) continue;
      throw params.error(key, "found together with restarts, whose steps and weights say it");
    }
    const bool is_list = params.has("steps") && params.peek("steps")->is_list();
    if (is_list) {
      steps_ = read_lengths(params, "steps");
    } else {
      steps_.assign(restarts_.size() + 1, read_length(params, "steps", 1));
    }
    if (steps_.size() != restarts_.size() + 1 || *std::ranges::min_element(steps_) < 1) {
      throw params.error("steps",
                         fmt::format("expected a length of 1 or more, or {} of them: of the fall "
                                     "from step 0 on, and of that after each of restarts",
                                     restarts_.size() + 1));
    }
  }

  double at(int64_t step) const override {
    if (restarts_.size() > 0) {
      const Restarts::Begin begin = restarts_.last(step);
      return fallen(from_ * begin.weight, step - begin.step, steps_[begin.count]);
    }
    int64_t period = steps_.front();
    int64_t restarts = 0;
    if (longer_ == 1) {
      restarts = step / period;
      step %= period;
    } else {
      for (; step >= period; ++restarts) {
        step -= period;
        period *= longer_;
      }
    }
    const double from = to_ + (from_ - to_) * std::pow(lower_, static_cast<double>(restarts));
    return fallen(from, step, period);
  }

  std::optional<int64_t> fallen_after() const override {
    if (restarts_.size() == 0 || std::abs(to_) >= std::abs(from_)) return std::nullopt;
    return restarts_.end().step + steps_.back();
  }

 private:
  double fallen(double from, int64_t step, int64_t period) const {
    return to_ + (from - to_) * 0.5 * (1 + std::cos(std::numbers::pi * part_done(step, period)));
  }

  double from_;
  double to_;
  Restarts restarts_;
  std::vector<int64_t> steps_;  ///< The lengths of the first fall, and after each restart.
  int64_t longer_;
  double lower_;
};

STEPOP_REGISTER_SCHEDULE(step, Step, {"Multiplied by a factor now and then."});

STEPOP_REGISTER_SCHEDULE(cosine_restarts, CosineRestarts,
                         {"Half a cosine again and again (SGDR, Loshchilov and Hutter 2017)."});

}  // namespace
}  // namespace stepop
