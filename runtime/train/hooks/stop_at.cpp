#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/number_text.h"
#include "runtime/train/iterator/hook.h"

namespace stepop {
namespace {

/// A metric and the values that are enough.
struct Condition {
  Config part;  ///< Of the config.
  std::string metric;
  std::optional<double> above;
  std::optional<double> below;

  bool holds(double value) const {
    return (!above || value > *above) && (!below || value < *below);
  }

  std::string text(double value) const {
    std::string bounds;
    if (above) bounds += fmt::format(" above {:g}", *above);
    if (below) bounds += fmt::format("{} below {:g}", above ? " and" : "", *below);
    return fmt::format("{} is {},{}", metric, short_number(value), bounds);
  }
};

Condition read_condition(const Config& part) {
  Condition condition{.part = part, .metric = "", .above = {}, .below = {}};
  condition.metric = part.get<std::string>("metric");
  if (part.has("above")) condition.above = part.get<double>("above");
  if (part.has("below")) condition.below = part.get<double>("below");
  if (!condition.above && !condition.below) {
    throw part.error("metric", "needs a bound beside it: above: 0.99, or below: 0.01");
  }
  return condition;
}

/// Ends a training when metrics have reached their bounds, each by its last logged value.
class StopAt : public Hook {
 public:
  StopAt(const Config& params, const Context& context) : context_(context) {
    const bool has_all = params.has("all");
    const bool has_any = params.has("any");
    if (params.has("metric") + has_all + has_any != 1) {
      throw params.error("metric", "give one of metric, all and any");
    }
    if (params.has("metric")) {
      conditions_.push_back(read_condition(params));
    } else {
      const std::string list = has_all ? "all" : "any";
      const Value* value = params.peek(list);
      if (!value->is_list() || value->as_list().empty()) {
        throw params.error(
            list, "expected a list, [{metric: NAME, above: 0.9}, ...], found " + value->describe());
      }
      for (size_t i = 0; i < value->as_list().size(); ++i) {
        conditions_.push_back(read_condition(params.at(fmt::format("{}/{}", list, i))));
      }
    }
    needs_all_ = !has_any;
    values_ = at::full({static_cast<int64_t>(conditions_.size())},
                       std::numeric_limits<double>::quiet_NaN(), at::kDouble);
    context.track("values", values_);
  }

  std::vector<WatchedNumber> watched_numbers() const override {
    std::vector<WatchedNumber> numbers;
    for (const auto& condition : conditions_) {
      numbers.push_back({condition.part, "metric", condition.metric});
    }
    return numbers;
  }

  void after_log(int64_t /*step*/, const OrderedMap<double>& scalars) override {
    auto* values = values_.mutable_data_ptr<double>();
    size_t held = 0;
    std::string text;
    for (size_t i = 0; i < conditions_.size(); ++i) {
      if (const double* found = scalars.find(conditions_[i].metric)) values[i] = *found;
      if (std::isnan(values[i]) || !conditions_[i].holds(values[i])) continue;
      ++held;
      text += (text.empty() ? "" : "; ") + conditions_[i].text(values[i]);
    }
    for (const auto& [name, value] : scalars) logged_.insert(name);
    if (needs_all_ ? held == conditions_.size() : held > 0) request_stop(text);
  }

  /// A misspelt metric would never end a training.
  void before_epoch(int64_t epoch) override {
    if (epoch == 1) warn_of_missing();
  }
  void after_training() override { warn_of_missing(); }

 private:
  void warn_of_missing() {
    for (int64_t i = 0; i < values_.numel(); ++i) {
      const std::string& metric = conditions_[static_cast<size_t>(i)].metric;
      if (!std::isnan(values_[i].item<double>()) || logged_.contains(metric)) continue;
      if (!context_.log.is_first("StopAt " + metric)) continue;
      const auto near = nearest_names(metric, {logged_.begin(), logged_.end()}, 1);
      context_.log.warn(fmt::format("StopAt waits for {}, which nothing has logged so far{}",
                                    metric, near.empty() ? "" : "; did you mean " + near[0] + "?"));
    }
  }

  const Context& context_;
  std::vector<Condition> conditions_;
  bool needs_all_ = true;
  at::Tensor values_;  ///< float64 [conditions]: the last ones; NaN before the first.
  std::set<std::string> logged_;
};

STEPOP_REGISTER_HOOK(StopAt,
                     {"Ends a training when metrics reach a bound.",
                      {{"metric", "none", "the full name of a logged number"},
                       {"above", "none", "enough when it is above this number"},
                       {"below", "none", "enough when it is below this number"},
                       {"all", "none",
                        "a list of {metric, above, below} in place of one, which all must hold"},
                       {"any", "none", "such a list, of which one must hold"}}});

}  // namespace
}  // namespace stepop
