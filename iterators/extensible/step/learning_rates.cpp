#include "iterators/extensible/step/learning_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "iterators/extensible/step/gate.h"
#include "runtime/core/base/number_text.h"
#include "runtime/train/optim/dlas_schedules.h"
#include "runtime/train/when/duration.h"

namespace stepop::extensible {
namespace {

/// Reads ascending integers of at least `least`.
std::vector<int64_t> read_ascending(const Config& train, const char* key, int64_t least,
                                    bool may_repeat) {
  const auto numbers = read_lengths(train, key);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool is_above =
        i == 0 || (may_repeat ? numbers[i] >= numbers[i - 1] : numbers[i] > numbers[i - 1]);
    if (numbers[i] >= least && is_above) continue;
    throw train.error(key, fmt::format("expected iterations of {} or more in ascending order, "
                                       "found {}",
                                       least, numbers[i]));
  }
  return numbers;
}

template <class T>
Value list_of(const std::vector<T>& numbers) {
  return Value(Value::List(numbers.begin(), numbers.end()));
}

}  // namespace

LearningRates::LearningRates(const Config& train) : train_(train), first_(first_iteration(train)) {
  if (train.has("default_lr_scheme")) scheme_ = train.get<std::string>("default_lr_scheme");
  constexpr std::array kSchemes = {kDlasMultiStep, kDlasProgressive, kDlasCosine};
  if (!scheme_.empty() && std::ranges::find(kSchemes, scheme_) == kSchemes.end()) {
    throw train.error("default_lr_scheme",
                      fmt::format("expected {}, found \"{}\"; any other schedule is written as the "
                                  "lr of optimizer_params, such as {{class: cosine, from: 1e-3, "
                                  "steps: 10000}}",
                                  fmt::join(kSchemes, ", "), scheme_));
  }
  refuse_keys_of_others();
  if (scheme_ == kDlasCosine) {
    read_restarts();
    read_cosine();
  } else if (!scheme_.empty()) {
    read_milestones();
    if (scheme_ == kDlasMultiStep) read_restarts();
  }
  read_warmup();
  if (train.has("force_lr")) train.get<double>("force_lr");  // throws unless it is a number
}

/// Throws UsageError for a key of another scheme, which would silently have no effect.
void LearningRates::refuse_keys_of_others() const {
  for (const auto& key : kDlasScheduleKeys) {
    if (key.is_read_here(scheme_) || !train_.has(key.name)) continue;
    std::vector<std::string_view> names(key.schedules.begin(), key.schedules.end());
    names.push_back(key.here_also);
    std::erase(names, "");
    const std::string schemes = fmt::format("{}", fmt::join(names, " and "));
    throw train_.error(
        key.name,
        scheme_.empty()
            ? fmt::format("belongs to {}: name it by default_lr_scheme", schemes)
            : fmt::format("belongs to {}, and default_lr_scheme is {}", schemes, scheme_));
  }
}

void LearningRates::read_milestones() {
  // A milestone that stands twice counts twice; of ProgressiveMultiStepLR once.
  milestones_ = read_ascending(train_, "gen_lr_steps", 1, /*may_repeat=*/true);
  if (scheme_ == kDlasProgressive) {
    milestones_.erase(std::unique(milestones_.begin(), milestones_.end()), milestones_.end());
  }
  gamma_ = train_.get<double>("lr_gamma");
}

void LearningRates::read_restarts() {
  if (train_.has("restarts")) restarts_ = read_ascending(train_, "restarts", 0, false);
  weights_.assign(restarts_.size(), 1);
  if (train_.has("restart_weights")) {
    weights_ = train_.get<std::vector<double>>("restart_weights");
  }
  // [1] is DL-Art-School's default for no restarts.
  if (restarts_.empty() && weights_ == std::vector<double>{1}) weights_.clear();
  if (weights_.size() != restarts_.size()) {
    throw train_.error("restart_weights",
                       fmt::format("expected {}, one for each of restarts, found {}",
                                   counted(restarts_.size(), "number"), weights_.size()));
  }
  clears_state_ = train_.get("clear_state", false);
  if (scheme_ == kDlasCosine) return;
  while (!restarts_.empty() && restarts_.front() < first_) {
    restarts_.erase(restarts_.begin());
    weights_.erase(weights_.begin());
  }
  for (int64_t& restart : restarts_) restart -= first_;
}

void LearningRates::read_cosine() {
  periods_ = read_lengths(train_, "T_period");
  if (periods_.size() != restarts_.size() + 1 || *std::ranges::min_element(periods_) < 1) {
    throw train_.error("T_period",
                       fmt::format("expected {} numbers of 1 or more, of the fall at the beginning "
                                   "and of that after each of restarts, found {}",
                                   restarts_.size() + 1, train_.peek("T_period")->describe()));
  }
  hold_ = read_length_or(train_, "warmup", 0, 0);
  lowest_ = train_.get("eta_min", 0.0);
  if (first_ > hold_ + 1) {  // start_step: 0, in many recipes, is one iteration
    throw train_.error("warmup",
                       fmt::format("the first iteration is {}, by start_step, and the cosine has "
                                   "begun before it: write the rest as the lr of "
                                   "optimizer_params, {{class: cosine, from: 1e-4, steps: 10000}}",
                                   first_));
  }
  hold_ = std::max<int64_t>(hold_ - first_, 0);
}

void LearningRates::read_warmup() {
  const int64_t iterations = train_.get_at_least("warmup_iter", -1, -1);
  if (iterations > 0) warmup_ = iterations;
  if (scheme_ != kDlasMultiStep) return;
  const int64_t steps = read_length_or(train_, "warmup_steps", 0, 0);
  if (steps == 0) return;
  if (warmup_ > 0) {
    throw train_.error("warmup_steps",
                       "found together with warmup_iter, which is a warm-up as well: keep one");
  }
  // The rate rises from 1 / steps in iteration 0 to the full rate in iteration steps - 1.
  warmup_ = steps - 1;
  warmup_from_ = 1 / static_cast<double>(steps);
}

Value LearningRates::by_scheme(const Value& lr, int64_t start) const {
  Value::Map schedule;
  if (scheme_ == kDlasCosine) {
    schedule.set("class", Value("cosine_restarts"));
    schedule.set("from", lr);
    schedule.set("to", Value(lowest_));
    schedule.set("steps", restarts_.empty() ? Value(periods_.front()) : list_of(periods_));
    if (restarts_.empty()) {
      schedule.set("class", Value("cosine"));
    } else {
      schedule.set("restarts", list_of(restarts_));
      schedule.set("weights", list_of(weights_));
    }
    if (hold_ == 0) return Value(std::move(schedule));
    // Restarts count from the start of the first fall.
    Value::List parts;
    parts.emplace_back(Value::Map{{"schedule", lr}, {"steps", Value(hold_)}});
    parts.emplace_back(Value::Map{{"schedule", Value(std::move(schedule))}});
    return Value(Value::Map{{"class", Value("chain")}, {"parts", Value(std::move(parts))}});
  }
  if (milestones_.empty() && restarts_.empty()) return lr;
  // A milestone takes effect one iteration before its number, as in DL-Art-School.
  std::vector<int64_t> at;
  for (const int64_t milestone : milestones_) {
    if (milestone + start - 1 >= first_) at.push_back(milestone + start - 1 - first_);
  }
  if (at.empty() && restarts_.empty()) return lr;
  schedule.set("class", Value("step"));
  schedule.set("from", lr);
  schedule.set("factor", Value(gamma_));
  schedule.set("at", list_of(at));
  if (!restarts_.empty()) {
    schedule.set("restarts", list_of(restarts_));
    schedule.set("weights", list_of(weights_));
  }
  return Value(std::move(schedule));
}

Value LearningRates::of(const Value& lr, int64_t start) const {
  if (train_.has("force_lr")) return *train_.peek("force_lr");
  if (lr.is_map()) return lr;
  Value rate = by_scheme(lr, start);
  if (warmup_ > first_) {
    Value::Map ramp;
    ramp.set("class", Value("ramp"));
    ramp.set("schedule", std::move(rate));
    const double begun = static_cast<double>(first_) / static_cast<double>(warmup_);
    ramp.set("steps", Value(warmup_ - first_));
    ramp.set("from", Value(warmup_from_ + (1 - warmup_from_) * begun));
    rate = Value(std::move(ramp));
  }
  rate.set_origin(lr.origin());
  return rate;
}

std::vector<int64_t> LearningRates::starts(const std::vector<std::string>& groups) const {
  if (scheme_ != kDlasProgressive) return std::vector<int64_t>(groups.size(), 0);
  auto starts = read_lengths(train_, "progressive_starts");
  if (starts.size() == 1) starts.assign(groups.size(), starts.front());
  if (starts.size() != groups.size() || *std::ranges::min_element(starts) < 0) {
    throw train_.error(
        "progressive_starts",
        fmt::format("expected {} iterations of 0 or more, for the groups of parameters {}, found "
                    "{}",
                    groups.size(), fmt::join(groups, ", "),
                    train_.peek("progressive_starts")->describe()));
  }
  return starts;
}

Value::List LearningRates::clears_at() const {
  Value::List at;
  if (!clears_state_) return at;
  for (const int64_t restart : restarts_) at.emplace_back(restart + hold_);
  return at;
}

}  // namespace stepop::extensible
