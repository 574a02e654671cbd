#include "runtime/train/iterator/step_ops.h"

namespace stepop {
namespace {

template <class Op>
const Op* find(const Op& first, std::string_view first_name, const OrderedMap<Op>& others,
               std::string_view name) {
  const Op* found = name == first_name ? &first : others.find(name);
  return found != nullptr && *found ? found : nullptr;
}

template <class Op>
void list(const Op& first, const char* first_name, const OrderedMap<Op>& others,
          OrderedMap<bool>& names) {
  if (first) names.set(first_name, true);
  for (const auto& [name, op] : others) {
    if (op) names.set(name, true);
  }
}

}  // namespace

const TrainOp* StepOps::find_train_op(std::string_view name) const {
  return find(train_op, "train_op", train_ops, name);
}

const LogOp* StepOps::find_log_op(std::string_view name) const {
  return find(log_op, "log_op", log_ops, name);
}

const EvalOp* StepOps::find_eval_op(std::string_view name) const {
  return find(eval_op, "eval_op", eval_ops, name);
}

std::string StepOps::names() const {
  OrderedMap<bool> names;
  list(train_op, "train_op", train_ops, names);
  list(log_op, "log_op", log_ops, names);
  list(eval_op, "eval_op", eval_ops, names);
  return names.key_list();
}

}  // namespace stepop
