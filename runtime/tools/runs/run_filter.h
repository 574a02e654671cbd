#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/value/comparison.h"
#include "runtime/core/value/value.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {

/// A condition on a config: `optimizer/lr=1e-3`, and likewise with !=, <, <=, > and >=.
class ConfigCondition {
 public:
  /// Throws UsageError for bad conditions.
  explicit ConfigCondition(const std::string& text);

  const std::string& path() const { return comparison_.name; }

  /// Numbers are equal whatever their types, and a component's name equals a map with this name as
  /// its `class`. A missing key equals null, differs from all other values, and is neither less nor
  /// more than anything.
  bool holds_in(const Value& config) const;

 private:
  Comparison comparison_;
  Value value_;
};

/// The conditions for runs.
struct RunFilter {
  std::optional<std::string> name = {};   ///< A part of the runs' names.
  std::optional<std::string> state = {};  ///< `ended`
  std::vector<std::string> where = {};    ///< Conditions that must all hold.
};

/// Keeps matching runs. Throws UsageError for an unknown state, and for a key that no run has.
void filter_runs(std::vector<RunSummary>& runs, const RunFilter& filter);

/// Shows the metric of --best for each run: its last and its best value, from the whole metrics
/// file. Throws UsageError for a metric that no run has logged, or whose better direction is
/// unknown.
void show_metric(std::vector<RunSummary>& runs, const std::string& asked);

}  // namespace stepop
