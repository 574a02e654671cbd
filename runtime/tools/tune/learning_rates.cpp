#include "runtime/tools/tune/learning_rates.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/pictures/axes.h"
#include "runtime/tools/tune/measured_training.h"

namespace stepop {
namespace {

constexpr double kLowest = 1e-7;
constexpr double kHighest = 10;
constexpr int64_t kSteps = 320;  // forty for each power of ten
constexpr double kDiverged = 4;  // times the lowest loss
constexpr double kMemory = 0.9;  // of the smoothed loss, for the step before
/// The smoothed loss of the first steps is the mean of few.
constexpr size_t kFirst = 10;
/// A slope is taken over so many steps before and after.
constexpr size_t kHalfWidth = 6;

/// The loss among the numbers of a step: the first with that name, or the first of all.
const double* find_loss(const OrderedMap<double>& scalars) {
  for (const auto& [name, value] : scalars) {
    if (name == "loss" || name.ends_with("/loss")) return &value;
  }
  return scalars.empty() ? nullptr : &scalars.begin()->second;
}

/// Answers with the loss of each step, and ends the process.
class LossWatch : public StepHook {
 public:
  using StepHook::StepHook;

  void after_batch(const Batch&, const OrderedMap<Scalars>& results) override {
    returned_.clear();
    for (const auto& [op, scalars] : results) {
      for (const auto& [name, scalar] : scalars) {
        const std::string whole = op + "/" + name;
        returned_.set(whole, scalar.read(whole));
      }
    }
  }
  void after_log(int64_t, const OrderedMap<double>& scalars) override { logged_ = scalars; }

  void after_step(int64_t step) override {
    StepHook::after_step(step);
    const double* found = find_loss(logged_);
    if (found == nullptr) found = find_loss(returned_);
    if (found == nullptr) {
      throw Error("no loss is known: neither train/log_op nor a train op returns a number");
    }
    const double loss = *found;
    logged_.clear();
    if (!std::isfinite(loss)) ::_exit(0);
    answer(fmt::format("{} {}", step, loss));
    if (step >= kSteps) ::_exit(0);
    smooth_ = step == 1 ? loss : kMemory * smooth_ + (1 - kMemory) * loss;
    if (step == 1) first_ = loss;
    lowest_ = std::min(lowest_, smooth_);
    // A loss that falls below 0 is near it for a while.
    constexpr double kPartOfFall = 0.1;
    const double size = std::max(std::abs(lowest_), kPartOfFall * (first_ - lowest_));
    if (smooth_ > lowest_ + (kDiverged - 1) * size) ::_exit(0);
  }

 private:
  OrderedMap<double> logged_;
  OrderedMap<double> returned_;
  double first_ = 0;
  double smooth_ = 0;
  double lowest_ = std::numeric_limits<double>::infinity();
};

double rate_of(int64_t step) {
  const double share = static_cast<double>(step) / static_cast<double>(kSteps);
  return kLowest * std::pow(kHighest / kLowest, share);
}

/// The log ops of the training as plain names: they all run in each step.
Value::List log_ops_of(const Value& given) {
  Value::List ops;
  for (const Value& item : given.as_list()) {
    const Value* op = item.is_map() ? item.find("op") : &item;
    if (op != nullptr && op->is_text() && op->as_text().starts_with("train/")) ops.push_back(*op);
  }
  return ops;
}

}  // namespace

std::vector<double> smoothed(const std::vector<RatePoint>& points) {
  std::vector<double> result;
  double mean = 0;
  double weight = 0;
  for (const auto& point : points) {
    mean = kMemory * mean + (1 - kMemory) * point.loss;
    weight = kMemory * weight + (1 - kMemory);
    result.push_back(mean / weight);
  }
  return result;
}

RateSuggestion suggest_rate(const std::vector<RatePoint>& points) {
  if (points.size() < kFirst + 3 * kHalfWidth) {
    return {.reason = "the loss became NaN or infinite within a few steps: no rate is suggested"};
  }
  const std::vector<double> line = smoothed(points);
  const auto lowest = static_cast<size_t>(
      std::min_element(line.begin() + static_cast<std::ptrdiff_t>(kFirst), line.end()) -
      line.begin());
  double squares = 0;
  for (size_t i = 0; i < points.size() && i <= lowest; ++i) {
    const double off = points[i].loss - line[i];
    squares += off * off;
  }
  const double noise = std::sqrt(squares / static_cast<double>(lowest + 1));
  const double fall = line[kFirst] - line[lowest];
  // A smoothed number has a quarter of this noise; the lowest of hundreds lies three quarters
  // below.
  if (!(fall > noise)) {
    return {.reason = fmt::format(
                "the loss falls by {}, no more than its noise of {}: no rate is suggested",
                short_number(std::max(fall, 0.0)), short_number(noise))};
  }
  size_t steepest = kFirst + kHalfWidth;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = kFirst + kHalfWidth; i <= lowest && i + kHalfWidth < line.size(); ++i) {
    const double slope = line[i - kHalfWidth] - line[i + kHalfWidth];
    if (slope > most) {
      most = slope;
      steepest = i;
    }
  }
  constexpr double kPart = 10;
  const double at_lowest = points[lowest].rate;
  const double fastest = points[steepest].rate;
  const bool is_low_enough = fastest <= at_lowest / kPart;
  return {.rate = is_low_enough ? fastest : at_lowest / kPart,
          .reason = fmt::format("the loss falls fastest at {}, and is lowest at {}; {}",
                                short_number(fastest), short_number(at_lowest),
                                is_low_enough
                                    ? "that at which it falls fastest is suggested"
                                    : "a tenth of that is suggested, as the first is close to it")};
}

Value config_of_rates(Value config, double low, double high, int64_t steps) {
  std::vector<std::string> places;
  if (const Value* one = config.find("optimizer"); one != nullptr && !one->is_null()) {
    places.emplace_back("optimizer/lr");
  }
  if (const Value* several = config.find("optimizers"); several != nullptr && several->is_map()) {
    for (const auto& [name, value] : several->as_map())
      places.push_back("optimizers/" + name + "/lr");
  }
  if (places.empty()) {
    throw UsageError("stepop tune --lr: the config has neither optimizer nor optimizers");
  }
  std::optional<Value::List> ops;
  if (const Value* given = config.find("log_ops"); given != nullptr && given->is_list()) {
    ops = log_ops_of(*given);
  }
  config = config_of_steps(std::move(config));
  config.as_map().erase("log_ops");
  if (ops) config.as_map().set("log_ops", *ops);
  config.as_map().set("log_freq", 1);
  config.as_map().set("on_nan", "ignore");
  std::vector<Override> overrides;
  for (const auto& place : places) {
    Value::Map schedule{{"class", "exponential"}, {"from", low}, {"to", high}, {"steps", steps}};
    overrides.push_back({place, Value(std::move(schedule))});
  }
  apply_overrides(config, std::move(overrides));
  return config;
}

namespace {

/// Adds train/log_op, if the iterator has it, to a config without log ops.
Config with_log_ops(const Config& config, World& world) {
  if (config.has("log_ops")) return config;
  Value root = *config.root().peek();
  Session trial(Config(Value(root)), /*train=*/true, /*debug=*/false, /*allow_unknown=*/true,
                &world);
  trial.initialize();
  trial.check();
  Value::List ops;
  for (const auto& op : trial.settings().log_ops) {
    if (op.name.text() == "train/log_op") ops.emplace_back(op.name.text());
  }
  root.as_map().set("log_ops", std::move(ops));
  return Config(std::move(root));
}

}  // namespace

void run_rate_test(const Config& config, bool allow_unknown, World& world,
                   const std::string& folder, const std::string& weights) {
  train_for_steps(with_log_ops(config, world), allow_unknown, world, folder, weights,
                  [](Session& session) { return std::make_unique<LossWatch>(session); });
}

std::vector<RatePoint> test_rates(const TuneOptions& options, const TraineeOptions& trainees) {
  options.progress("starting", 0);
  Trainee trainee(trainees, kTestRates, config_of_rates(options.config, kLowest, kHighest, kSteps),
                  {});
  std::vector<RatePoint> points;
  while (const auto line = trainee.read_first()) {
    char* rest = nullptr;
    const int64_t step = std::strtoll(line->c_str(), &rest, 10);
    points.push_back({.rate = rate_of(step - 1), .loss = std::strtod(rest, nullptr)});
    options.progress(fmt::format("learning rate {}", short_number(points.back().rate)),
                     static_cast<double>(step) / static_cast<double>(kSteps));
  }
  return points;
}

std::string rate_picture(const std::vector<RatePoint>& points, const RateSuggestion& suggestion) {
  if (points.empty()) throw Error("the loss was NaN or infinite from the first step on");
  const std::vector<double> line = smoothed(points);
  // A diverging loss would leave no room for the rest.
  const auto [low, high] = std::ranges::minmax(line);
  const double top = std::min(high, line.front() + (line.front() - low) / 2);
  const auto [bottom, ceiling] =
      range_with_room(low - (top - low) / 10, top + (top - low) / 10, Plot::kHeight);
  Axis rates{.name = "learning rate",
             .low = std::log10(points.front().rate),
             .high = std::max(std::log10(points.back().rate), std::log10(points.front().rate) + 1)};
  for (double power = std::ceil(rates.low); power <= rates.high; ++power) {
    rates.ticks.push_back(power);
    rates.texts.push_back(fmt::format("1e{:.0f}", power));
  }
  Plot plot(rates, number_axis("loss", bottom, ceiling));
  const auto at = [&](double rate, double loss) {
    return Plot::Point{plot.x(std::log10(rate)), plot.y(std::clamp(loss, bottom, ceiling))};
  };
  if (suggestion.rate) {
    plot.canvas().fill(plot.x(std::log10(*suggestion.rate)), plot.y(ceiling), 2,
                       plot.y(bottom) - plot.y(ceiling), kInk);
  }
  for (size_t i = 0; i < points.size(); ++i) {
    const Plot::Point here = at(points[i].rate, points[i].loss);
    plot.canvas().fill(here.first, here.second, 2, 2, kInk);
    if (i > 0) plot.line(at(points[i - 1].rate, line[i - 1]), at(points[i].rate, line[i]));
  }
  return plot.png(suggestion.rate ? "suggested: " + short_number(*suggestion.rate) : "");
}

}  // namespace stepop
