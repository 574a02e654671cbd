#include "runtime/loop/preflight.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval_out/eval_schema.h"
#include "runtime/loop/due_ops.h"
#include "runtime/loop/random_fork.h"
#include "runtime/loop/split_step.h"

namespace stepop {
namespace {

/// What ops could change besides parameters and optimizers, which only train ops change.
class Snapshot {
 public:
  explicit Snapshot(const Context& context) : context_(context) {
    buffers_ = context.networks.copy_buffers();
    const auto networks = context.networks.names();
    for (const auto& name : context.tracker.names()) {
      const bool is_network = std::find(networks.begin(), networks.end(), name) != networks.end();
      if (is_network || context.updates.contains(name)) continue;
      State state = context.tracker.save(name);
      for (auto& [key, tensor] : state) {
        tensors_.emplace(fmt::format("{}.{}", name, key), tensor.clone());
      }
      names_.push_back(name);
    }
  }

  void restore() const {
    context_.networks.restore_buffers(buffers_);
    for (const auto& name : names_) context_.tracker.load(name, tensors_);
  }

 private:
  const Context& context_;
  State buffers_;
  State tensors_;
  std::vector<std::string> names_;
};

void check_split(const DueOps& due, Iterator& iterator, const Context& context,
                 Position& position) {
  const BatchOrder& order = context.splits.order(due.split);
  std::vector<Random> randoms = order.randoms(0);
  const Batch batch = run_op("datasets", due.split, [&] {
    return load_batch(context.splits.dataset(due.split), order.indices(0), randoms)
        .to(context.device);
  });
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
  const RandomFork fork(context.seed, context.device);
  const Snapshot snapshot(context);
  for (const auto& due : due_ops(settings, train)) check_split(due, iterator, context, position);
  snapshot.restore();
}

}  // namespace stepop
