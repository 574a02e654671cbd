#include "runtime/train/optim/metric_schedule.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/train/optim/schedule.h"

namespace stepop {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kNumbers = 5;  // in a state

thread_local MetricSchedules* current = nullptr;

class PlateauSchedule : public Schedule {
 public:
  using Params = Plateau::Params;

  PlateauSchedule(const Params& own, const Config& params)
      : plateau_(std::make_shared<Plateau>(own, params)) {
    if (params.get(kPer.name, kPer.default_value) != kPer.default_value) {
      throw params.error(kPer.name, "a plateau changes when its metric is logged: remove it");
    }
    MetricSchedules::add(plateau_, params);
  }
  double at(int64_t) const override { return plateau_->value(); }

 private:
  std::shared_ptr<Plateau> plateau_;
};

STEPOP_REGISTER_SCHEDULE(plateau, PlateauSchedule,
                         {"Falls when a metric has not become better for a while, as torch.optim's "
                          "ReduceLROnPlateau."});

}  // namespace

void Plateau::Params::declare(Parameters& p) {
  p.require("from", from, "the number at the beginning");
  p.require("metric", metric, "full name of a number that is logged: validation/eval_op/loss");
  const Config* config = p.describe({"mode",
                                     "min",
                                     "min or max: whether a lower or a higher value is better",
                                     false,
                                     {.kind = "text", .choices = {"min", "max"}}});
  if (config != nullptr) more_is_better = read_more_is_better(*config, "min");
  p.add("factor", factor, "what the number is multiplied by, below 1", at_least(0).below(1));
  p.add("patience", patience, "how many values in a row that are not better leave it as it is",
        at_least(0));
  p.add("threshold", threshold, "by how much a value has to be better than the best one",
        at_least(0));
  p.add("threshold_mode", threshold_mode, "rel: times the size of the best value; abs: as it is",
        one_of({"rel", "abs"}));
  p.add("cooldown", cooldown, "how many values after a fall are not judged", at_least(0));
  p.add("min", min, "where it stops");
}

Plateau::Plateau(const Params& params, const Config& config)
    : path_(config.path()),
      metric_(params.metric),
      from_(params.from),
      factor_(params.factor),
      min_(params.min),
      patience_(params.patience),
      cooldown_(params.cooldown),
      threshold_(params.threshold),
      is_relative_(params.threshold_mode == "rel"),
      more_is_better_(params.more_is_better),
      best_(more_is_better_ ? -kInfinity : kInfinity) {}

double Plateau::value() const { return scale_ == 1 ? from_ : std::max(from_ * scale_, min_); }

bool Plateau::is_better(double metric) const {
  // PyTorch multiplies by the best value itself: below 0 the margin would turn round, and any value
  // be better.
  double margin = is_relative_ ? threshold_ * std::abs(best_) : threshold_;
  if (std::isinf(best_)) margin = 0;  // before the first value
  return more_is_better_ ? metric > best_ + margin : metric < best_ - margin;
}

bool Plateau::observe(int64_t step, double metric) {
  if (step <= last_step_) return false;
  last_step_ = step;
  if (is_better(metric)) {
    best_ = metric;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (waits_ > 0) {
    --waits_;
    bad_ = 0;
  }
  if (bad_ <= patience_) return false;
  waits_ = cooldown_;
  bad_ = 0;
  constexpr double kNoChange = 1e-8;  // torch.optim's eps
  const double before = value();
  if (before - std::max(before * factor_, min_) <= kNoChange) return false;
  scale_ *= factor_;
  return true;
}

at::Tensor Plateau::save() const {
  const at::Tensor state = at::empty({kNumbers}, at::kDouble);
  auto* numbers = state.mutable_data_ptr<double>();
  numbers[0] = scale_;
  numbers[1] = best_;
  numbers[2] = static_cast<double>(bad_);
  numbers[3] = static_cast<double>(waits_);
  numbers[4] = static_cast<double>(last_step_);
  return state;
}

void Plateau::load(const at::Tensor& state) {
  if (state.numel() != kNumbers || state.scalar_type() != at::kDouble || !state.is_contiguous()) {
    throw Error(fmt::format("schedules.{}: not the state of a plateau", path_));
  }
  const auto* numbers = state.const_data_ptr<double>();
  scale_ = numbers[0];
  best_ = numbers[1];
  bad_ = static_cast<int64_t>(numbers[2]);
  waits_ = static_cast<int64_t>(numbers[3]);
  last_step_ = static_cast<int64_t>(numbers[4]);
}

MetricSchedules::Scope::Scope(MetricSchedules& schedules)
    : before_(std::exchange(current, &schedules)) {}

MetricSchedules::Scope::~Scope() { current = before_; }

void MetricSchedules::add(std::shared_ptr<Plateau> plateau, const Config& params) {
  if (current == nullptr) {
    throw params.error("",
                       "a schedule that follows a metric works in what a training builds at its "
                       "start: an optimizer, an iterator, a hook");
  }
  current->plateaus_.push_back(std::move(plateau));
}

std::vector<std::string> MetricSchedules::observe(int64_t step, const OrderedMap<double>& scalars) {
  std::vector<std::string> texts;
  for (const auto& plateau : plateaus_) {
    const double* value = scalars.find(plateau->metric());
    if (value == nullptr || !plateau->observe(step, *value)) continue;
    std::string text =
        fmt::format("{} falls to {}: {} is {}, and no better than before", plateau->path(),
                    short_number(plateau->value()), plateau->metric(), short_number(*value));
    // Each group of an optimizer has its own plateau.
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  return texts;
}

State MetricSchedules::save() const {
  State state;
  for (const auto& plateau : plateaus_) state[plateau->path()] = plateau->save();
  return state;
}

void MetricSchedules::load(const State& state) {
  for (const auto& plateau : plateaus_) {
    const auto found = state.find(plateau->path());
    if (found != state.end()) plateau->load(found->second);
  }
}

}  // namespace stepop
