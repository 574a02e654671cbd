#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "eval_out/eval_outputs.h"
#include "runtime/log/logs.h"

namespace stepop {

/// A closure that trains. It may return scalars, which are averaged on the device and logged with
/// the next log that is due; in a GAN they exist only here.
class TrainOp {
 public:
  TrainOp() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TrainOp> && std::is_invocable_v<F&>)
      TrainOp(F closure) {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      closure_ = [closure = std::move(closure)]() mutable {
        closure();
        return Scalars{};
      };
    } else {
      closure_ = std::move(closure);
    }
  }

  explicit operator bool() const { return static_cast<bool>(closure_); }
  Scalars operator()() const { return closure_(); }

 private:
  std::function<Scalars()> closure_;
};

using LogOp = std::function<Logs()>;
using EvalOp = std::function<EvalOutputs()>;

/// What `step_op` returns for one batch: closures of which the runtime calls those that are due,
/// each at most once. They capture by value (`[=]`): `step_op` has returned when they run.
struct StepOps {
  TrainOp train_op = {};
  LogOp log_op = {};
  EvalOp eval_op = {};
  /// Further ones by name, such as `train_op/generator`; `train_ops` in the config orders them.
  OrderedMap<TrainOp> train_ops = {};
  /// Further ones by name, such as `sample_op`; `log_ops` in the config says when each is due.
  OrderedMap<LogOp> log_ops = {};
  OrderedMap<EvalOp> eval_ops = {};

  /// The op of that name, or null when it was not returned.
  const TrainOp* find_train_op(std::string_view name) const;
  const LogOp* find_log_op(std::string_view name) const;
  const EvalOp* find_eval_op(std::string_view name) const;

  /// The names of the ops that were returned, for messages.
  std::string names() const;
};

}  // namespace stepop
