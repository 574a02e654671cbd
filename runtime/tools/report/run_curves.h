#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// A number at a training step.
struct ScalarAt {
  int64_t step = 0;
  double value = 0;
};

/// One logged scalar over a run.
struct ScalarSummary {
  std::optional<ScalarAt> last;  ///< May be NaN or infinite.
  std::optional<ScalarAt> min;   ///< The first of equal ones; NaN does not count.
  std::optional<ScalarAt> max;

  /// Takes in the next number.
  void add(const ScalarAt& here);
};

/// The minimum or maximum, whichever is better; none where that is unknown.
std::optional<ScalarAt> best_of(const ScalarSummary& summary, MetricDirection direction);

/// Every scalar of a metrics file by its name, in the order in which they came up. Memory does not
/// grow with the file. Throws Error when it cannot be read; one that is not there is empty.
OrderedMap<ScalarSummary> summarize_scalars(const std::string& metrics_file);

/// Adds the scalars that no training of the run has logged, of its evaluations without a training.
/// What a training logged they leave alone: they may have been of another dataset.
void add_unlogged_scalars(const RunDirectory& run, OrderedMap<ScalarSummary>& scalars);

/// A scalar over the steps, kept in constant memory: of a long run each bucket of steps keeps its
/// lowest and its highest point, so that no spike is lost.
class ScalarCurve {
 public:
  /// Points may come in any order; of one step the last one counts while buckets hold one step.
  void add(int64_t step, double value);

  /// Keeps at most `buckets` buckets, two points each.
  void thin(size_t buckets);

  bool is_thinned() const { return width_ > 1; }
  int64_t count() const { return count_; }

  /// Of a thinned curve the mean of each bucket, at its middle: what a smoothed line goes through.
  std::vector<ScalarAt> means() const;

  /// By step. What is NaN or infinite is a point too: a gap.
  std::vector<ScalarAt> points() const;

 private:
  struct Bucket {
    std::optional<ScalarAt> low;
    std::optional<ScalarAt> high;
    std::optional<ScalarAt> gap;
    double mean = 0;  ///< Of those that are finite.
    int64_t count = 0;

    void add(const ScalarAt& point);
    void add(const Bucket& other);
  };

  void halve();

  int64_t width_ = 1;  ///< Steps of a bucket.
  int64_t count_ = 0;
  std::map<int64_t, Bucket> buckets_;
};

/// What was logged of one scalar.
struct ScalarHistory {
  ScalarCurve curve;
  ScalarSummary summary;
};

/// What a run has logged, thinned so that a page can hold it.
struct RunCurves {
  OrderedMap<ScalarHistory> scalars;  ///< By name: `train/log_op/loss`.
  ScalarCurve epochs;                 ///< The epoch, with its fraction, by step.
  ScalarCurve seconds;                ///< The training time by step.
  int64_t samples = 0;                ///< Training examples at the last line.
  /// The numbers of evaluations by step.
  std::map<int64_t, OrderedMap<double>> evaluations;
  int64_t broken_lines = 0;  ///< Lines of the file that are no metrics.
};

/// Reads the metrics file of a run once; `eval_op` is the one whose numbers are those of
/// evaluations. Each curve keeps at most 2,000 points, and all together 100,000 or, when there are
/// more than 1,000 curves, at most 100 each; means are as many as half of them. Empty when there is
/// no such file; throws Error when it cannot be read.
RunCurves read_curves(const std::string& metrics_file,
                      const std::string& eval_op = "validation/eval_op");

}  // namespace stepop
