#include "runtime/loop/checks/preflight.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval_out/eval_schema.h"
#include "runtime/loop/checks/contract.h"
#include "runtime/step/due_ops.h"
#include "runtime/step/random_fork.h"
#include "runtime/step/snapshot.h"
#include "runtime/step/split_step.h"

namespace stepop {
namespace {

void check_split(const DueOps& due, Iterator& iterator, const Context& context,
                 Position& position) {
  const BatchOrder& order = context.splits.order(due.split);
  const Batch batch =
      run_at("datasets", due.split, [&] { return context.splits.batch(due.split, order, 0); });
  // An evaluation of the split train alone is none of a training step.
  const bool is_training = due.split == "train" && due.is_in_training();
  const StepOps ops = call_step_op(iterator, context, position, due.split, is_training, batch);
  const SplitGuard guard(position, due.split);
  const at::NoGradGuard no_grad;
  for (const auto& name : due.train) {
    if (ops.find_train_op(name) == nullptr) throw missing_op(context, due.split, name, ops);
  }
  for (const auto& name : due.log) {
    const LogOp* op = ops.find_log_op(name);
    if (op == nullptr) throw missing_op(context, due.split, name, ops);
    run_op(context, due.split, name, [&] { checked((*op)(), due.split + "/" + name); });
  }
  for (const auto& name : due.eval) {
    const EvalOp* op = ops.find_eval_op(name);
    if (op == nullptr) throw missing_op(context, due.split, name, ops);
    run_op(context, due.split, name, [&] { check_eval_outputs((*op)(), batch.size()); });
  }
}

}  // namespace

void preflight(const Settings& settings, bool train, Iterator& iterator, const Context& context,
               Position& position) {
  check_devices(context);
  if (train) {
    check_all_trained(context);
    check_all_saved(context);
  }
  const RandomFork fork(context.seed, context.device);
  const Snapshot snapshot(context);
  for (const auto& due : due_ops(settings, train)) check_split(due, iterator, context, position);
  snapshot.restore();
}

}  // namespace stepop
