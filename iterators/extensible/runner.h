#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "iterators/extensible/evaluation.h"
#include "iterators/extensible/hooked_networks.h"
#include "iterators/extensible/step/state.h"
#include "iterators/extensible/step/step.h"
#include "runtime/core/log/logs.h"
#include "runtime/data/batch.h"

namespace stepop::extensible {

class StepMetrics;
class Trace;

/// Runs batches through the steps.
class Runner {
 public:
  /// `parts`: the number of parts into which a batch is split and whose gradients are summed,
  /// `mega_batch_factor`. `kept`: the names of the keys that are read after all steps. Throws
  /// UsageError for a mistake in `steps` or `eval/evaluators`.
  Runner(const Context& context, int64_t parts, const std::vector<std::string>& kept);

  /// Sets the number of parts into which the next batches are split.
  void set_parts(int64_t parts) { parts_ = parts; }

  /// Checks for keys that nothing makes, given the keys of `batch`. Each set of keys of a split is
  /// checked once; in the training split, the pictures are checked too.
  void check(const Batch& batch);

  /// Runs one iteration with the updates of its steps. Returns the losses.
  Scalars train(const Batch& batch, int64_t iteration);

  /// Computes the losses of `train` without an update.
  Scalars look(const Batch& batch, int64_t iteration);

  /// Runs an evaluation: parts for training only are left out.
  Scalars evaluate(const Batch& batch, int64_t iteration);

  /// Adds to `made` the values of the evaluators that are on and for this split, for the last batch
  /// of `evaluate`.
  void measure(int64_t iteration, EvalOutputs& made);

  /// A table of the parts that `batch` runs through: for each part the keys that it reads and
  /// writes, the shape of its output, and its time. The iteration is chosen so that the most parts
  /// are on; nothing is trained.
  std::string table(const Batch& batch);

  /// The value of a kept key after the last iteration, for each part of the batch, without a graph;
  /// empty when the value is not a tensor.
  std::vector<at::Tensor> kept_parts(const std::string& name) const;

  /// What the parts logged in the last iteration besides numbers.
  const Logs& other_logs() const { return others_; }
  const HookedNetworks& networks() const { return networks_; }

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<EvaluatorPart>& evaluators() const { return evaluators_; }
  const Keys& keys() const { return keys_; }

 private:
  std::vector<std::string> known_with(const std::vector<std::string>& given) const;
  void check_required(const std::vector<std::string>& known) const;
  void check_visuals(const std::vector<std::string>& known) const;
  void fill(const Batch& batch, int64_t parts);
  enum class Mode { kTrain, kLook, kEvaluate };

  Scalars run_all(const Batch& batch, int64_t parts, int64_t iteration, Mode mode);
  void run(Step& step, int64_t iteration, Mode mode, StepMetrics& metrics);
  /// The sum of the losses; nothing when none is on.
  std::optional<WeightedMean> run_part(Step& step, StepState& state, const Iteration& at,
                                       bool is_first, double share, bool trains,
                                       StepMetrics& metrics);

  const Context& context_;
  Keys keys_;
  std::vector<Step> steps_;
  std::vector<EvaluatorPart> evaluators_;
  HookedNetworks networks_;
  Logs others_;
  int64_t parts_;
  std::vector<Slot> kept_;
  std::vector<StepState> states_;  ///< One for each part of the current batch.
  std::vector<double> shares_;     ///< Each part's share of the batch's examples.
  std::vector<int64_t> begins_;    ///< The first example of each part, and the batch size.
  std::map<std::string, std::vector<std::vector<std::string>>> checked_;  ///< Keys, by split.
  Trace* trace_ = nullptr;                                                ///< Used by `table` only.
};

/// Joins the values of a batch's parts into [B, ...]; undefined without parts.
at::Tensor joined(const std::vector<at::Tensor>& parts);

}  // namespace stepop::extensible
