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

/// An example that cannot be used: `get` threw, or it contradicts the dataset's labels, which are
/// loaded only when all examples are read.
struct BadExample {
  int64_t index = 0;
  std::string problem;
};

struct SurveyOptions {
  int64_t threads = 1;
  /// Examples to read: one, at random, from each of so many parts of the dataset.
  int64_t examples = 0;
  /// The first examples instead, one after another, by one thread: of a stream, which is read in
  /// its order.
  bool is_in_order = false;
  /// Examples to keep, evenly spread over those that are read.
  int64_t shown = 0;
  /// Of the generators that `get` receives: those of an evaluation.
  uint64_t order_seed = 0;
  InterruptCheck interrupt = {};
  /// Called a few times a second with the number of examples read and of bad ones.
  std::function<void(int64_t read, int64_t bad)> progress = {};
};

/// What the examples of a dataset are like.
struct Survey {
  /// More problems than this are counted and not kept; their indices are kept up to kMostIndices.
  static constexpr size_t kMostProblems = 100;
  static constexpr size_t kMostIndices = 1'000'000;

  int64_t size = 0;            ///< Of the dataset; of one that does not know it what was read.
  int64_t read = 0;            ///< Examples that were read, the bad ones with them.
  double seconds = 0;          ///< From the first to the last.
  double example_seconds = 0;  ///< The mean time of one `get`, in one thread.
  std::vector<std::pair<std::string, KeySummary>> keys;  ///< Sorted by the order of an example.
  int64_t bad_count = 0;
  std::vector<BadExample> bad;       ///< The first kMostProblems, by index.
  std::vector<int64_t> bad_indices;  ///< Ascending.
  std::vector<int64_t> with_nan;     ///< Examples with a NaN or an infinity, ascending.
  std::vector<std::pair<int64_t, Example>> shown;
  std::exception_ptr stopped_by;  ///< What `interrupt` threw; the rest is of what was read.
};

/// Reads the examples in several threads, each once. A bad example is no error here. What
/// `interrupt` throws ends the reading.
Survey survey_dataset(const Dataset& dataset, const SurveyOptions& options);

}  // namespace stepop
