#pragma once

#include <string>

#include "runtime/core/base/crash_place.h"
#include "runtime/data/batch.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/iterator/step_ops.h"
#include "runtime/train/networks/autocast.h"
#include "runtime/train/networks/sync_batch_norm.h"
#include "runtime/train/step/op_warnings.h"

namespace stepop {

/// Rethrows the current exception, of whatever type, as an Error that begins with the place,
/// `train/log_op`, unless its text already does. A mistake in the config keeps its own place.
[[noreturn]] void rethrow_from(const std::string& split, const std::string& op);

/// Runs `call`, a part of the user's code; an error says where it arose.
template <class Call>
auto run_at(const std::string& split, const std::string& op, const Call& call) {
  try {
    return call();
  } catch (...) {
    rethrow_from(split, op);
  }
}

/// Rethrows the current exception with the step and the batch's examples below it.
[[noreturn]] void rethrow_with_examples(const Context& context, const std::string& split,
                                        const Batch& batch);

/// Runs `call` on a batch of a training or an evaluation; an error says with which examples it
/// arose.
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

/// Like `run_at`, for `step_op` and the ops: they compute in the run's precision.
template <class Call>
auto run_op(const Context& context, const std::string& split, const std::string& op,
            const Call& call) {
  const CrashPlaceGuard place(crash_place.op, op);
  crash_place.begin_seconds.store(seconds_in_handler(), std::memory_order_relaxed);
  const AutocastGuard precision(context.precision, context.device);
  const SyncBatchNorm::Scope sync(context.sync_batch_norm);
  const OpWarnings warnings(context, split, op);
  return run_at(split, op, call);
}

/// Calls `step_op` for a batch. Training mode and gradients are only on for the split train in a
/// training step, never in an evaluation of that split.
StepOps call_step_op(Iterator& iterator, const Context& context, Position& position,
                     const std::string& split, bool is_training, const Batch& batch);

/// Sets what `get_split()` returns, and the share of the batch, during its lifetime.
class SplitGuard {
 public:
  SplitGuard(Position& position, const std::string& split, double share = 1);
  ~SplitGuard();
  SplitGuard(const SplitGuard&) = delete;
  SplitGuard& operator=(const SplitGuard&) = delete;

 private:
  Position& position_;
  std::string before_;
  double share_before_;
};

/// An Error for an op that is due and was not returned. Where the config names the op, a UsageError
/// with the place and the nearest op that was returned.
Error missing_op(const Context& context, const std::string& split, const std::string& op,
                 const StepOps& ops);

/// The same for a log op.
Error missing_log_op(const Context& context, const std::string& split, const std::string& op,
                     const StepOps& ops);

/// Returns a log op's result after checking every scalar and image. Throws Error that begins with
/// `name`.
const Logs& checked(const Logs& logs, const std::string& name);

}  // namespace stepop
