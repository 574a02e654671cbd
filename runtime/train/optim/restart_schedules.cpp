// Schedules that may restart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/duration.h"

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

  /// Reads `restarts` and `weights`; the weights are 1 by default.
  explicit Restarts(const Config& params) {
    std::vector<int64_t> steps;
    if (params.has("restarts")) steps = read_lengths(params, "restarts");
    check_ascending(steps, params, "restarts");
    std::vector<double> weights(steps.size(), 1);
    if (params.has("weights")) weights = params.get<std::vector<double>>("weights");
    if (weights.size() != steps.size()) {
      throw params.error("weights", fmt::format("expected {}, one for each of restarts, found {}",
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
  explicit Step(const Config& params)
      : from_(params.get<double>("from")), factor_(params.get("factor", 0.1)), restarts_(params) {
    const bool has_every = params.has("every");
    const bool has_at = params.has("at");
    if (has_every == has_at) {
      throw params.error("", fmt::format("expected \"every\" or \"at\", found {}",
                                         has_every ? "both" : "neither"));
    }
    if (has_every) {
      every_ = read_length(params, "every", 1);
    } else {
      at_ = read_lengths(params, "at");
    }
    Restarts::check_ascending(at_, params, "at", /*may_repeat=*/true);
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
  int64_t every_ = 0;
  std::vector<int64_t> at_;
};

/// SGDR (Loshchilov and Hutter 2017).
class CosineRestarts : public Schedule {
 public:
  explicit CosineRestarts(const Config& params)
      : from_(params.get<double>("from")),
        to_(params.get("to", 0.0)),
        restarts_(params),
        longer_(params.get_between("longer", 1, 1000, 1)),
        lower_(params.get("lower", 1.0)) {
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

STEPOP_REGISTER_SCHEDULE(
    step, Step,
    {"Multiplied by a factor now and then.",
     {{"from", "", "the number at step 0"},
      {"factor", "0.1", "what it is multiplied by"},
      {"every", "none", "training steps between two drops"},
      {"at", "none",
       "instead of `every`: the list of steps of the drops; a step that stands "
       "twice drops twice"},
      {"restarts", "none", "list of steps in which it is `from` again"},
      {"weights", "1", "list of what `from` is multiplied by at restarts"},
      kWarmup}});

STEPOP_REGISTER_SCHEDULE(
    cosine_restarts, CosineRestarts,
    {"Half a cosine again and again (SGDR, Loshchilov and Hutter 2017).",
     {{"from", "", "the number at step 0"},
      {"to", "0", "the number before each restart"},
      {"steps", "", "training steps of a fall; with `restarts` also a list, of each fall"},
      {"longer", "1", "how many times longer each period is than the one before, an integer"},
      {"lower", "1", "what the height, `from` - `to`, is multiplied by at each restart"},
      {"restarts", "none",
       "list of steps in which it begins anew; between a fall and the next "
       "restart it is `to`"},
      {"weights", "1", "list of what `from` is multiplied by at restarts"},
      kWarmup}});

}  // namespace
}  // namespace stepop
