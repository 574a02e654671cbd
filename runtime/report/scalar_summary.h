#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/ordered_map.h"
#include "runtime/log/better.h"
#include "runtime/run/run_directory.h"

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
std::optional<ScalarAt> best_of(const ScalarSummary& summary, Better better);

/// Every scalar of a metrics file by its name, in the order in which they came up. Memory does not
/// grow with the file. Throws Error when it cannot be read; one that is not there is empty.
OrderedMap<ScalarSummary> summarize_scalars(const std::string& metrics_file);

/// Adds the scalars that no training of the run has logged, of its evaluations without a training.
/// What a training logged they leave alone: they may have been of another dataset.
void add_unlogged_scalars(const RunDirectory& run, OrderedMap<ScalarSummary>& scalars);

}  // namespace stepop
