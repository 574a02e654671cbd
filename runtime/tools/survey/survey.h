#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/data/dataset.h"
#include "runtime/tools/survey/key_summary.h"

namespace stepop {

/// A bad example: `get` threw, or the example contradicts the dataset's labels, which are loaded
/// only when all examples are read.
struct BadExample {
  int64_t index = 0;
  std::string problem;
};

struct SurveyOptions {
  int64_t threads = 1;
  /// The number of examples to read: a random example from each of as many parts of the dataset.
  int64_t examples = 0;
  /// Whether to read the first examples in order, in one thread, as a stream requires.
  bool is_in_order = false;
  /// The number of examples to keep, evenly spread over the examples read.
  int64_t shown = 0;
  /// Seeds the generators that `get` receives, as in an evaluation.
  uint64_t order_seed = 0;
  InterruptCheck interrupt = {};
  /// Called a few times a second with the numbers of read and of bad examples.
  std::function<void(int64_t read, int64_t bad)> progress = {};
};

/// A description of a dataset's examples.
struct Survey {
  /// The most problems that are kept; further problems are counted, with up to kMostIndices
  /// indices.
  static constexpr size_t kMostProblems = 100;
  static constexpr size_t kMostIndices = 1'000'000;

  int64_t size = 0;            ///< The dataset's size; if unknown, the number of examples read.
  int64_t read = 0;            ///< The number of examples read, including bad examples.
  double seconds = 0;          ///< The time of the whole reading.
  double example_seconds = 0;  ///< The mean time of one `get`, in one thread.
  std::vector<std::pair<std::string, KeySummary>> keys;  ///< In the order of an example's keys.
  int64_t bad_count = 0;
  std::vector<BadExample> bad;       ///< The first kMostProblems, by index.
  std::vector<int64_t> bad_indices;  ///< Ascending.
  std::vector<int64_t> with_nan;     ///< Examples with a NaN or an infinity, ascending.
  std::vector<std::pair<int64_t, Example>> shown;
  std::exception_ptr stopped_by;  ///< From `interrupt`; the other results are then partial.
};

/// Reads the examples in several threads, each once. A bad example is no error here. An exception
/// from `interrupt` ends the reading.
Survey survey_dataset(const Dataset& dataset, const SurveyOptions& options);

}  // namespace stepop
