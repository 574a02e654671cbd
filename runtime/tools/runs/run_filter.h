#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/config/value.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {

/// A condition on a config: `optimizer/lr=1e-3`, and likewise with !=, <, <=, > and >=.
class ConfigCondition {
 public:
  /// Throws UsageError for what is none.
  explicit ConfigCondition(const std::string& text);

  const std::string& path() const { return path_; }

  /// Numbers are equal whatever their types, and a component's name and a map with it as its
  /// `class`. A key that is missing equals null, differs from all else and is neither less nor
  /// more than anything.
  bool holds_in(const Value& config) const;

 private:
  std::string path_;
  std::string sign_;
  Value value_;
};

/// Which runs are asked for.
struct RunFilter {
  std::optional<std::string> name = {};   ///< A part of their names.
  std::optional<std::string> state = {};  ///< `ended`
  std::vector<std::string> where = {};    ///< Conditions that all hold.
};

/// Leaves those. Throws UsageError for a word that is no state, and for a key that no run has.
void filter_runs(std::vector<RunSummary>& runs, const RunFilter& filter);

/// Shows of each run the number that --best of the command line asks for: its last and its best
/// value, which are looked up in the whole metrics file. Throws UsageError for one that no run has
/// logged, or of which nobody knows whether lower or higher is better.
void show_metric(std::vector<RunSummary>& runs, const std::string& asked);

}  // namespace stepop
