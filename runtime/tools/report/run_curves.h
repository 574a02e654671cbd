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
  std::optional<ScalarAt> min;   ///< The first minimum; NaN does not count.
  std::optional<ScalarAt> max;

  /// Adds the next number.
  void add(const ScalarAt& here);
};

/// The minimum or maximum, whichever is better; nothing if that is unknown.
std::optional<ScalarAt> best_of(const ScalarSummary& summary, MetricDirection direction);

/// Every scalar of a metrics file by name, in the order of its first occurrence. Memory does not
/// grow with the file. Throws Error when it cannot be read; a missing file is empty.
OrderedMap<ScalarSummary> summarize_scalars(const std::string& metrics_file);

/// Adds the scalars that only the run's evaluations without a training have logged. The scalars of
/// trainings do not change, since the evaluations may use another dataset.
void add_unlogged_scalars(const RunDirectory& run, OrderedMap<ScalarSummary>& scalars);

/// A scalar over the steps, in constant memory: in a long run, each bucket of steps keeps its
/// lowest and its highest point, so that no spike is lost.
class ScalarCurve {
 public:
  /// Points may come in any order; the last point of a step counts while buckets hold one step.
  void add(int64_t step, double value);

  /// Keeps at most `buckets` buckets, two points each.
  void thin(size_t buckets);

  bool is_thinned() const { return width_ > 1; }
  int64_t count() const { return count_; }

  /// The mean of each bucket of a thinned curve, at its middle, for a smoothed line.
  std::vector<ScalarAt> means() const;

  /// Sorted by step. NaN and infinity are points too: gaps.
  std::vector<ScalarAt> points() const;

 private:
  struct Bucket {
    std::optional<ScalarAt> low;
    std::optional<ScalarAt> high;
    std::optional<ScalarAt> gap;
    double mean = 0;  ///< The mean of the finite values.
    int64_t count = 0;

    void add(const ScalarAt& point);
    void add(const Bucket& other);
  };

  void halve();

  int64_t width_ = 1;  ///< Steps in a bucket.
  int64_t count_ = 0;
  std::map<int64_t, Bucket> buckets_;
};

/// The log of one scalar.
struct ScalarHistory {
  ScalarCurve curve;
  ScalarSummary summary;
};

/// A run's logged numbers, thinned for a page.
struct RunCurves {
  OrderedMap<ScalarHistory> scalars;  ///< By name: `train/log_op/loss`.
  ScalarCurve epochs;                 ///< The epoch, with its fraction, by step.
  ScalarCurve seconds;                ///< The training time by step.
  int64_t samples = 0;                ///< Training examples up to the last line.
  /// The evaluations' numbers by step.
  std::map<int64_t, OrderedMap<double>> evaluations;
  int64_t broken_lines = 0;  ///< Lines of the file that cannot be parsed.
};

/// Reads a run's metrics file once; `eval_op` is the op whose numbers belong to evaluations. Each
/// curve keeps at most 2,000 points, and all curves of the `runs` that share a page 100,000, or,
/// with more than 1,000 curves, at most 100 each; there are half as many means. Empty without the
/// file; throws Error when it cannot be read.
RunCurves read_curves(const std::string& metrics_file,
                      const std::string& eval_op = "validation/eval_op", size_t runs = 1);

}  // namespace stepop
