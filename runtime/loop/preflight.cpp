#include "runtime/loop/preflight.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval_out/eval_schema.h"
#include "runtime/loop/contract.h"
#include "runtime/loop/random_fork.h"
#include "runtime/loop/snapshot.h"
#include "runtime/loop/split_step.h"

namespace stepop {
namespace {

struct DueOps {
  std::string split;
  std::vector<std::string> train, log, eval;
};

/// Every op that the config will ever call, by split.
std::vector<DueOps> due_ops(const Settings& settings, bool train) {
  std::vector<DueOps> splits;
  const auto of = [&](const std::string& split) -> DueOps& {
    for (auto& known : splits) {
      if (known.split == split) return known;
    }
    splits.push_back({split, {}, {}, {}});
    return splits.back();
  };
  if (train) {
    for (const auto& op : settings.train_ops) of(op.split).train.push_back(op.op);
    for (const auto& op : settings.log_ops) of(op.name.split).log.push_back(op.name.op);
  }
  if (settings.evaluates) of(settings.eval_op.split).eval.push_back(settings.eval_op.op);
  return splits;
}

void check_split(const DueOps& due, Iterator& iterator, const Context& context,
                 Position& position) {
  const BatchOrder& order = context.splits.order(due.split);
  std::vector<Random> randoms = order.randoms(0);
  const Batch batch = run_op("datasets", due.split, [&] {
    return load_batch(context.splits.dataset(due.split), order.indices(0), randoms)
        .to(context.device);
  });
  // An evaluation of the split train alone is none of a training step.
  const bool is_training = due.split == "train" && !(due.train.empty() && due.log.empty());
  const StepOps ops = call_step_op(iterator, context, position, due.split, is_training, batch);
  const SplitGuard guard(position, due.split);
  const at::NoGradGuard no_grad;
  for (const auto& name : due.train) {
    if (ops.find_train_op(name) == nullptr) throw missing_op(context, due.split, name, ops);
  }
  for (const auto& name : due.log) {
    const LogOp* op = ops.find_log_op(name);
    if (op == nullptr) throw missing_op(context, due.split, name, ops);
    run_op(due.split, name, [&] { checked((*op)(), due.split + "/" + name); });
  }
  for (const auto& name : due.eval) {
    const EvalOp* op = ops.find_eval_op(name);
    if (op == nullptr) throw missing_op(context, due.split, name, ops);
    run_op(due.split, name, [&] { check_eval_outputs((*op)(), batch.size()); });
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
