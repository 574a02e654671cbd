#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/name_pattern.h"
#include "runtime/core/config/config.h"
#include "runtime/core/value/comparison.h"

namespace stepop {

/// Which checkpoints `eval_all` and `eval_forever` evaluate, by default all of them:
/// `eval_filter: {steps: [100, 200], from: 1000, until: 9000, match: "00$",
/// where: validation/eval_op/loss < 0.5}`. A checkpoint has to meet every condition that is given.
class CheckpointFilter {
 public:
  /// The metric's value that the training logged at the checkpoint's step; nothing without a value.
  using FindMetric = std::function<std::optional<double>(const std::string& metric)>;

  CheckpointFilter() = default;
  /// Reads `eval_filter`. Throws UsageError, with the place, for a filter that makes no sense.
  explicit CheckpointFilter(const Config& config);

  /// Whether the step and the name (`model-<step>`, without its ending) meet the conditions.
  bool takes(int64_t step, std::string_view name) const;

  /// Whether all conditions hold; nothing while the value of a metric is missing.
  std::optional<bool> holds(const FindMetric& find) const;

  bool has_conditions() const { return !conditions_.empty(); }

 private:
  struct Condition {
    Comparison comparison;  ///< The name is the metric's.
    double limit;
  };

  static Condition read_condition(const Config& part, const std::string& key);

  std::vector<int64_t> steps_;  ///< Empty: any step.
  int64_t from_ = 0;
  int64_t until_ = std::numeric_limits<int64_t>::max();
  NamePattern match_{""};
  std::vector<Condition> conditions_;
};

}  // namespace stepop
