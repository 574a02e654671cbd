#include "runtime/step/due_ops.h"

namespace stepop {

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

}  // namespace stepop
