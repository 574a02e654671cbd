#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "runtime/data/loader.h"
#include "runtime/iterator/iterator.h"

namespace stepop {

/// One split within one training step: its batch is fetched and `step_op` called when an op of it
/// is first asked for, and each closure runs at most once.
class SplitStep {
 public:
  /// `position` is the one that `context` shows to the iterator.
  SplitStep(std::string split, Iterator& iterator, const Context& context, Position& position,
            LoaderOptions loader_options);

  /// Begins a new step: the last one's batch, closures and graph are released.
  void begin();

  /// Runs a train op. Throws Error when `step_op` did not return it.
  Scalars train(const std::string& op);
  /// The result of a log op, without gradients and with the random state forked.
  const Logs& log(const std::string& op);

  /// The number of examples in this step's batch; fetches it when need be.
  int64_t batch_size();
  /// Batches taken so far, over all epochs.
  int64_t batches_taken() const { return loader_ ? loader_->position() : options_.first_batch; }

 private:
  const StepOps& ops();
  uint64_t fork_seed() const;

  std::string split_;
  Iterator& iterator_;
  const Context& context_;
  Position& position_;
  LoaderOptions options_;
  std::unique_ptr<Loader> loader_;
  std::optional<Batch> batch_;
  std::optional<StepOps> ops_;
  OrderedMap<Logs> logs_;
};

/// Throws the exception at hand as an Error that begins with the place, `train/log_op`, unless it
/// does already; a mistake in the config has a place of its own.
[[noreturn]] void rethrow_from(const std::string& split, const std::string& op);

/// Runs `call`, a part of a user's code; what it throws gets to know where.
template <class Call>
auto run_at(const std::string& split, const std::string& op, const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    rethrow_from(split, op);
  }
}

/// Throws the exception at hand, an Error, with the step and the examples of the batch below it.
[[noreturn]] void rethrow_with_examples(const Context& context, const std::string& split,
                                        const Batch& batch);

/// Runs `call` on a batch of a training or an evaluation; what it throws gets to know with which
/// examples.
template <class Call>
auto run_on(const Context& context, const std::string& split, const Batch& batch,
            const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    rethrow_with_examples(context, split, batch);
  }
}

/// The same as `run_at` for `step_op` and the ops, which compute in the run's precision.
template <class Call>
auto run_op(const Context& context, const std::string& split, const std::string& op,
            const Call& call) {
  const AutocastGuard precision(context.precision, context.device);
  return run_at(split, op, call);
}

/// Calls `step_op` for a batch; with training mode and gradients only for the split train of a
/// training step, never in an evaluation of it.
StepOps call_step_op(Iterator& iterator, const Context& context, Position& position,
                     const std::string& split, bool is_training, const Batch& batch);

/// Sets the split that `get_split()` tells while it lives.
class SplitGuard {
 public:
  SplitGuard(Position& position, const std::string& split);
  ~SplitGuard();
  SplitGuard(const SplitGuard&) = delete;
  SplitGuard& operator=(const SplitGuard&) = delete;

 private:
  Position& position_;
  std::string before_;
};

/// An Error for an op that is due and was not returned.
Error missing_op(const Context& context, const std::string& split, const std::string& op,
                 const StepOps& ops);

/// A log op's result with every scalar, image and text checked, their names included, which become
/// files. Throws Error with `name`.
const Logs& checked(const Logs& logs, const std::string& name);

}  // namespace stepop
