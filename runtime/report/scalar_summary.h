#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/config/value.h"
#include "runtime/ordered_map.h"

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
};

/// What of a scalar is better.
enum class Better { kUnknown, kLower, kHigher };

/// By the config's own word (`checkpoints` or `stop_when`: metric, mode), else by the words in the
/// name: lower for losses and errors, higher for accuracies and scores; else unknown, as for a
/// learning rate. `config` may be null.
Better better_of(const std::string& name, const Value* config);

/// The minimum or maximum, whichever is better; none where that is unknown.
std::optional<ScalarAt> best_of(const ScalarSummary& summary, Better better);

/// Every scalar of a metrics file by its name, in the order in which they came up. Memory does not
/// grow with the file. Throws Error when it cannot be read; one that is not there is empty.
OrderedMap<ScalarSummary> summarize_scalars(const std::string& metrics_file);

}  // namespace stepop
