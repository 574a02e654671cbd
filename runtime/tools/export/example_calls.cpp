#include "runtime/tools/export/example_calls.h"

#include "runtime/train/iterator/splits.h"
#include "runtime/train/step/call_op.h"
#include "runtime/train/step/random_fork.h"
#include "runtime/train/when/settings.h"

namespace stepop {

std::vector<NetworkInputs> example_calls(Session& session, const std::string& network) {
  const Context& context = session.context();
  const NetworkCalls calls(context.networks);
  session.check();
  if (!calls.of(network).empty() || !session.trains()) return calls.of(network);
  // A discriminator may be called only by train ops.
  const RandomFork random(context.seed, context.device);
  const Batch batch = context.splits.batch("train", context.splits.order("train"), 0);
  for (const auto& due : due_ops(session.settings(), /*train=*/true)) {
    if (due.train.empty()) continue;
    const StepOps ops =
        call_step_op(session.iterator(), context, session.position(), due.split, true, batch);
    const SplitGuard guard(session.position(), due.split);
    for (const auto& name : due.train) {
      if (const TrainOp* op = ops.find_train_op(name)) run_op(context, due.split, name, *op);
    }
  }
  return calls.of(network);
}

}  // namespace stepop
