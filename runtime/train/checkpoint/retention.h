#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace stepop {

/// Which checkpoints of a run are kept; by default all of them.
struct Retention {
  enum class Mode { kMax, kMin };

  /// Whether a checkpoint at `step` is kept forever, when the previous checkpoint is at `before` (0
  /// without one).
  using KeepAlways = std::function<bool(int64_t before, int64_t step)>;

  int64_t keep_last = 0;  ///< How many of the newest checkpoints are kept; 0: all.
  int64_t keep_best = 0;  ///< How many of the best are kept; at least 1 with a metric.
  std::string metric;     ///< The full name in metrics.jsonl; empty: no checkpoint is the best.
  Mode mode = Mode::kMax;
  KeepAlways keep_always = {};  ///< Empty: none is kept forever.
};

/// The metric by step. NaN counts as unknown.
using MetricByStep = std::map<int64_t, double>;

/// The `keep_best` steps with the best known metric, best first; the earlier of two equal steps
/// first.
std::vector<int64_t> best_steps(const std::vector<int64_t>& steps, const MetricByStep& values,
                                const Retention& retention);

/// Which of `steps` (ascending) to remove. Never the newest, `latest`, `best` or the best by
/// `values`. Also never an `unjudged` step, which may be the best: its evaluation ended without the
/// metric, because a callback failed.
std::vector<int64_t> steps_to_remove(const std::vector<int64_t>& steps, const MetricByStep& values,
                                     const Retention& retention, std::optional<int64_t> latest,
                                     std::optional<int64_t> best,
                                     const std::set<int64_t>& unjudged = {});

}  // namespace stepop
