#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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

  void declare_bounds(Parameters& p) {
    p.add("above", above, "enough when it is above this number");
    p.add("below", below, "enough when it is below this number");
  }

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

void check_bounds(const Condition& condition) {
  if (condition.above || condition.below) return;
  throw condition.part.error("metric", "needs a bound beside it: above: 0.99, or below: 0.01");
}

Condition read_condition(const Config& part) {
  Condition condition{
      .part = part, .metric = part.get<std::string>("metric"), .above = {}, .below = {}};
  Parameters reader(part);
  condition.declare_bounds(reader);
  check_bounds(condition);
  return condition;
}

/// Ends a training when metrics have reached their bounds, each by its last logged value.
class StopAt : public Hook {
 public:
  struct Params {
    std::optional<std::string> metric;
    Condition one;
    std::vector<Condition> listed;
    std::vector<std::string> lists;  ///< The names of the lists that are given.

    void declare(Parameters& p) {
      p.add("metric", metric, "the full name of a logged number");
      one.declare_bounds(p);
      add_list(p, "all", "a list of {metric, above, below} in place of one, which all must hold");
      add_list(p, "any", "such a list, of which one must hold");
    }

    void add_list(Parameters& p, const std::string& name, std::string_view about) {
      const Config* config = p.describe_optional(name, "list of map", about);
      if (config == nullptr) return;
      lists.push_back(name);
      const Value* value = config->peek(name);
      if (!value->is_list() || value->as_list().empty()) {
        throw config->error(
            name, "expected a list, [{metric: NAME, above: 0.9}, ...], found " + value->describe());
      }
      for (size_t i = 0; i < value->as_list().size(); ++i) {
        listed.push_back(read_condition(config->at(fmt::format("{}/{}", name, i))));
      }
    }
  };

  StopAt(const Params& params, const Config& config, const Context& context)
      : context_(context), conditions_(params.listed) {
    if (params.metric.has_value() + params.lists.size() != 1) {
      throw config.error("metric", "give one of metric, all and any");
    }
    if (!params.metric && (params.one.above || params.one.below)) {
      throw config.error(params.one.above ? "above" : "below",
                         "is the bound of metric; each entry of a list has its own");
    }
    if (params.metric) {
      conditions_ = {params.one};
      conditions_[0].part = config;
      conditions_[0].metric = *params.metric;
      check_bounds(conditions_[0]);
    }
    needs_all_ = params.metric || params.lists[0] == "all";
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

STEPOP_REGISTER_HOOK(StopAt, {"Ends a training when metrics reach a bound."});

}  // namespace
}  // namespace stepop
