#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/base/interrupt.h"
#include "runtime/iterator/iterator.h"
#include "runtime/when/settings.h"

namespace stepop {

/// What an evaluation found.
struct EvaluationResult {
  std::string folder;
  std::string outputs;       ///< The path of the HDF5 file; empty when the config cleans it up.
  std::string first_output;  ///< A key of that file, `outputs/logits`.
  /// By full name: `validation/eval_op/loss`, `validation/eval_op/accuracy/accuracy`.
  OrderedMap<double> scalars;
  /// The name and the message of each callback that threw.
  OrderedMap<std::string> failures;
  std::string warning;  ///< What else there is to tell; empty: nothing.
};

/// Called now and then with the examples that are done and all of them.
using EvaluationProgress = std::function<void(int64_t done, int64_t total)>;

/// Runs the config's eval op over its whole split in dataset order, writes the outputs batch by
/// batch to `folder`/outputs.h5, then runs the callbacks over that file, whose images become
/// `folder`/<callback>/<name>_<step>.png; last of all, the scalars go to `folder`/scalars.json. The
/// memory needed does not grow with the dataset. `git` and `checkpoint`, the checksum of the one
/// that the weights are of (empty: none), are told in the file. What a process that was killed left
/// of the same evaluation in `folder` is gone on with: behind its last row, or with the callbacks.
/// Throws Error when something but a callback failed,
/// and what `interrupt` throws between batches, between callbacks, and whenever a callback reads
/// from the file; `folder` then lacks scalars.json.
EvaluationResult evaluate(const Settings& settings, Iterator& iterator, const Context& context,
                          Position& position, const std::string& folder, const std::string& git,
                          const EvaluationProgress& progress, const InterruptCheck& interrupt = {},
                          const std::string& checkpoint = "");

/// The rows of an evaluation.
struct EvaluationRows {
  int64_t done = 0;
  int64_t total = 0;
};

/// The rows in `folder` behind which `evaluate` would go on; nothing when it would begin anew.
std::optional<EvaluationRows> rows_left_behind(const Settings& settings, const Context& context,
                                               const Position& position, const std::string& folder,
                                               const std::string& git,
                                               const std::string& checkpoint);

/// The scalars of the evaluation in `folder`, when it ended, with its callbacks; else nothing.
std::optional<OrderedMap<double>> scalars_of_evaluation(const std::string& folder);

/// Adds scalars of callbacks that ran afterwards, in the place of those of the same names, when the
/// evaluation ended; else there is no file of them, which says so, and none is made.
void add_scalars_of_evaluation(const std::string& folder, const OrderedMap<double>& scalars);

}  // namespace stepop
