#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iterators/extensible/evaluation.h"
#include "iterators/extensible/state.h"
#include "iterators/extensible/step.h"
#include "runtime/core/log/logs.h"
#include "runtime/data/batch.h"

namespace stepop::extensible {

class Trace;

/// Carries batches through the steps.
class Runner {
 public:
  /// `parts`: into how many parts a batch is split, whose gradients add up, `mega_batch_factor`.
  /// `kept`: the names of the keys that are read when all steps are over. Throws UsageError for a
  /// mistake in `steps` or `eval/evaluators`.
  Runner(const Context& context, int64_t parts, const std::vector<std::string>& kept);

  /// Into how many parts the batches that come are split.
  void set_parts(int64_t parts) { parts_ = parts; }

  /// Looks for keys that nothing makes, given those of such a batch. Done once for each split; in
  /// that of the training also for pictures that nothing makes.
  void check(const Batch& batch);

  /// One iteration, with the updates of its steps. Returns the losses.
  Scalars train(const Batch& batch, int64_t iteration);

  /// The same without an update: what `train` would compute.
  Scalars look(const Batch& batch, int64_t iteration);

  /// As an evaluation: parts that are for training alone are left out.
  Scalars evaluate(const Batch& batch, int64_t iteration);

  /// What the evaluators that are on say of the batch that `evaluate` was given last, added to
  /// `made`.
  void measure(int64_t iteration, EvalOutputs& made);

  /// What such a batch goes through, as a table: for each part the keys that it reads and writes,
  /// the shape of what it makes, and its time. Of an iteration in which as many parts as can be are
  /// on; nothing is trained.
  std::string table(const Batch& batch);

  /// What a kept key holds after the last iteration, for each part of the batch, without a graph;
  /// none when it holds no tensor.
  std::vector<at::Tensor> kept_parts(const std::string& name) const;

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<EvaluatorPart>& evaluators() const { return evaluators_; }
  const Keys& keys() const { return keys_; }

 private:
  class Metrics;

  std::vector<std::string> known_with(const std::vector<std::string>& given) const;
  void check_required(const std::vector<std::string>& known) const;
  void check_visuals(const std::vector<std::string>& known) const;
  void fill(const Batch& batch, int64_t parts);
  enum class Mode { kTrain, kLook, kEvaluate };

  Scalars run_all(const Batch& batch, int64_t parts, int64_t iteration, Mode mode);
  void run(Step& step, int64_t iteration, Mode mode, Metrics& metrics);
  at::Tensor run_part(Step& step, StepState& state, const Iteration& at, bool is_first,
                      double share, bool trains, Metrics& metrics);

  const Context& context_;
  Keys keys_;
  std::vector<Step> steps_;
  std::vector<EvaluatorPart> evaluators_;
  int64_t parts_;
  std::vector<Slot> kept_;
  std::vector<StepState> states_;  ///< One for each part of the batch at hand.
  std::vector<double> shares_;     ///< Of the examples of the batch.
  std::vector<int64_t> begins_;    ///< The first example of each, and the batch's size.
  /// The keys of batches that were looked at, of evaluations and of the training.
  std::vector<std::vector<std::string>> checked_;
  std::vector<std::vector<std::string>> checked_in_training_;
  Trace* trace_ = nullptr;  ///< For `table` alone.
};

/// The value of the whole batch, [B, ...], from those of its parts; undefined without parts.
at::Tensor joined(const std::vector<at::Tensor>& parts);

}  // namespace stepop::extensible
