#pragma once

#include <string>

#include "runtime/core/base/crash_place.h"
#include "runtime/data/batch.h"
#include "runtime/train/iterator/autocast.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/iterator/step_ops.h"
#include "runtime/train/step/op_warnings.h"

namespace stepop {

/// Throws the exception at hand, of whatever type, as an Error that begins with the place,
/// `train/log_op`, unless it does already; a mistake in the config has a place of its own.
[[noreturn]] void rethrow_from(const std::string& split, const std::string& op);

/// Runs `call`, a part of a user's code; an error in it says where it arose.
template <class Call>
auto run_at(const std::string& split, const std::string& op, const Call& call) {
  try {
    return call();
  } catch (...) {
    rethrow_from(split, op);
  }
}

/// Throws the exception at hand with the step and the examples of the batch below it.
[[noreturn]] void rethrow_with_examples(const Context& context, const std::string& split,
                                        const Batch& batch);

/// Runs `call` on a batch of a training or an evaluation; an error in it says with which examples
/// it arose.
template <class Call>
auto run_on(const Context& context, const std::string& split, const Batch& batch,
            const Call& call) {
  const CrashPlaceGuard examples(crash_place.examples, batch.indices());
  try {
    return call();
  } catch (...) {
    rethrow_with_examples(context, split, batch);
  }
}

/// The same as `run_at` for `step_op` and the ops, which compute in the run's precision.
template <class Call>
auto run_op(const Context& context, const std::string& split, const std::string& op,
            const Call& call) {
  const CrashPlaceGuard place(crash_place.op, op);
  const AutocastGuard precision(context.precision, context.device);
  const OpWarnings warnings(context, split, op);
  return run_at(split, op, call);
}

/// Calls `step_op` for a batch; with training mode and gradients only for the split train of a
/// training step, never in an evaluation of it.
StepOps call_step_op(Iterator& iterator, const Context& context, Position& position,
                     const std::string& split, bool is_training, const Batch& batch);

/// Sets the split that `get_split()` returns while it lives.
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

/// An Error for an op that is due and was not returned; where the config names the op, a UsageError
/// with the place and the nearest op that was returned.
Error missing_op(const Context& context, const std::string& split, const std::string& op,
                 const StepOps& ops);

/// The same for a log op that the config names.
Error missing_log_op(const Context& context, const std::string& split, const std::string& op,
                     const StepOps& ops);

/// A log op's result with every scalar and image checked. Throws Error that begins with `name`.
const Logs& checked(const Logs& logs, const std::string& name);

}  // namespace stepop
