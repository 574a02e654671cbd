#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace stepop {

/// Which checkpoints of a run are kept; by default all.
struct Retention {
  enum class Mode { kMax, kMin };

  /// Whether a checkpoint at `step` is kept forever, when the one before it is at `before` (0 when
  /// there is none).
  using KeepAlways = std::function<bool(int64_t before, int64_t step)>;

  int64_t keep_last = 0;  ///< So many newest ones are kept; 0: all.
  int64_t keep_best =
      0;  ///< So many with the best metric are kept; at least 1 when there is a metric.
  std::string metric;  ///< By its full name in metrics.jsonl; empty: none is the best.
  Mode mode = Mode::kMax;
  KeepAlways keep_always = {};  ///< Empty: none.
};

/// The metric by step. NaN counts as not known.
using MetricByStep = std::map<int64_t, double>;

/// The `keep_best` steps with the best known metric, the best one first; of equal ones the earlier.
std::vector<int64_t> best_steps(const std::vector<int64_t>& steps, const MetricByStep& values,
                                const Retention& retention);

/// Which of `steps` (ascending) to remove. Never the newest, `latest`, `best` or the best by
/// `values`; nor `unjudged` ones, of which one may be the best: their evaluation ended without the
/// metric, since a callback failed.
std::vector<int64_t> steps_to_remove(const std::vector<int64_t>& steps, const MetricByStep& values,
                                     const Retention& retention, std::optional<int64_t> latest,
                                     std::optional<int64_t> best,
                                     const std::set<int64_t>& unjudged = {});

}  // namespace stepop
