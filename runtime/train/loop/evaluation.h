#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/data/sampler.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/when/evaluation_settings.h"

namespace stepop {

class EvalWriter;
class Loader;

/// The result of an evaluation.
struct EvaluationResult {
  std::string name;  ///< Empty for `eval_hook`.
  std::string folder;
  std::string outputs;       ///< The path of the HDF5 file; empty when the config removes it.
  std::string first_output;  ///< An array of that file with one row per example, `outputs/logits`.
  /// By full name: `validation/eval_op/loss`, `validation/eval_op/accuracy/accuracy`, or with the
  /// evaluation's name, `test/loss`.
  OrderedMap<double> scalars;
  /// The name and the message of each callback that threw.
  OrderedMap<std::string> failures;
  std::string warning;  ///< Anything else to report; empty: nothing.
};

/// Called from time to time with the number of finished examples, and of all examples.
using EvaluationProgress = std::function<void(int64_t done, int64_t total)>;

/// The progress of an evaluation in rows.
struct EvaluationRows {
  int64_t done = 0;
  int64_t total = 0;
};

/// One evaluation of a session: an eval op over its whole split in dataset order, followed by the
/// callbacks over the outputs. Built once; its memory does not grow with the dataset.
class Evaluation {
 public:
  /// All arguments must outlive it. `git` is stored in every file.
  Evaluation(const EvaluationSettings& settings, Iterator& iterator, const Context& context,
             std::string git);

  const EvaluationSettings& settings() const { return settings_; }

  /// Writes the outputs batch by batch to `folder`/outputs.h5, then runs the callbacks over that
  /// file, whose images become `folder`/<callback>/<name>_<step>.png; last of all, the scalars go
  /// to `folder`/scalars.json. `checkpoint`, the checksum of the one that the weights are of
  /// (empty: none), is stored in the file. What a process that was killed left of the same
  /// evaluation in `folder` is resumed: behind its last row, or with the callbacks. A damaged file
  /// is renamed to `.damaged`, with a warning in the result, and removed when the evaluation is
  /// over.
  ///
  /// Throws Error when anything but a callback failed, and whatever `interrupt` throws between
  /// batches, between callbacks, and whenever a callback reads from the file; `folder` then lacks
  /// scalars.json.
  EvaluationResult run(Position& position, const std::string& folder,
                       const EvaluationProgress& progress, const InterruptCheck& interrupt = {},
                       const std::string& checkpoint = "") const;

  /// The rows in `folder` after which `run` would resume; nothing when it would start again.
  std::optional<EvaluationRows> rows_left_behind(const Position& position,
                                                 const std::string& folder,
                                                 const std::string& checkpoint) const;

 private:
  OrderedMap<Attribute> attributes(const Position& position, const std::string& checkpoint) const;
  const BatchOrder& order() const;
  int64_t total() const;
  std::optional<int64_t> rows_in(const std::string& path,
                                 const OrderedMap<Attribute>& attributes) const;
  void begin_outputs(const std::string& path, const OrderedMap<Attribute>& attributes,
                     std::optional<EvalWriter>& writer) const;
  std::unique_ptr<Loader> own_batches(int64_t first, const InterruptCheck& interrupt) const;
  void write_outputs(Position& position, const OrderedMap<Attribute>& attributes,
                     const EvaluationProgress& progress, const InterruptCheck& interrupt,
                     EvaluationResult& result) const;
  EvalOutputs outputs_of(const Batch& batch, int64_t number, Position& position) const;
  void interrupt_all(const InterruptCheck& interrupt) const;
  void finish(int64_t step, const InterruptCheck& interrupt, EvaluationResult& result) const;
  void look_at_outputs(int64_t step, const InterruptCheck& interrupt,
                       EvaluationResult& result) const;

  const EvaluationSettings& settings_;
  Iterator& iterator_;
  const Context& context_;
  const std::string& split_;
  EvaluationCallbacks callbacks_;
  OrderedMap<Attribute> attributes_;  ///< Attributes that the files of all evaluations share.
};

/// The scalars of the evaluation in `folder`, with its callbacks; nothing unless the evaluation
/// ended.
std::optional<OrderedMap<double>> scalars_of_evaluation(const std::string& folder);

/// Removes what a process that was killed may have left in `folder`, whose evaluation is over: the
/// file of an evaluation that cleans up, and damaged ones.
void remove_remains(const std::string& folder);

/// Adds scalars of callbacks that ran afterwards, in the place of those of the same names, when the
/// evaluation ended; else there is no file of them, which says so, and none is made.
void add_scalars_of_evaluation(const std::string& folder, const OrderedMap<double>& scalars);

}  // namespace stepop
