#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "eval_out/eval_outputs.h"
#include "runtime/core/log/logs.h"

namespace stepop {

/// A closure of `step_op` that returns a `Result`, or no closure (empty, null). A closure with
/// another result does not compile, and the error says what the op should return.
template <class Result>
class Op {
 public:
  Op() = default;
  Op(std::nullptr_t) {}
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Op> && std::is_invocable_v<F&>) Op(F closure) {
    using Found = std::invoke_result_t<F&>;
    if constexpr (std::is_convertible_v<Found, Result>) {
      closure_ = std::move(closure);
    } else if constexpr (std::is_void_v<Found> && std::is_same_v<Result, Scalars>) {
      closure_ = [closure = std::move(closure)]() mutable {
        closure();
        return Scalars{};
      };
    } else {
      static_assert(!std::is_same_v<Result, Scalars>,
                    "a train_op returns nothing, or stepop::Scalars to be logged: "
                    "`update_.step(loss);`, or `return stepop::Scalars{{\"loss\", loss}};`");
      static_assert(!std::is_same_v<Result, Logs>,
                    "a log_op returns stepop::Logs: "
                    "`return stepop::Logs{.scalars = {{\"loss\", loss}}};`");
      static_assert(!std::is_same_v<Result, EvalOutputs>,
                    "an eval_op returns stepop::EvalOutputs: "
                    "`return stepop::EvalOutputs{.outputs = {{\"logits\", logits}}};`");
    }
  }

  explicit operator bool() const { return static_cast<bool>(closure_); }
  Result operator()() const { return closure_(); }

 private:
  std::function<Result()> closure_;
};

/// Trains. May return nothing, or scalars, which are averaged on the device and logged with the
/// next log that is due; the losses of a GAN exist only here.
using TrainOp = Op<Scalars>;
using LogOp = Op<Logs>;
using EvalOp = Op<EvalOutputs>;

/// The result of `step_op` for one batch: closures, each of which the runtime calls at most once,
/// if it is due. They capture by value (`[=]`), because they run after `step_op` has returned.
struct StepOps {
  TrainOp train_op = {};
  LogOp log_op = {};
  EvalOp eval_op = {};
  /// Further ops by name, such as `train_op/generator`; `train_ops` in the config gives their
  /// order.
  OrderedMap<TrainOp> train_ops = {};
  /// Further ops by name, such as `sample_op`; `log_ops` in the config says when each is due.
  OrderedMap<LogOp> log_ops = {};
  OrderedMap<EvalOp> eval_ops = {};

  /// The op of that name, or null when `step_op` did not return it.
  const TrainOp* find_train_op(std::string_view name) const;
  const LogOp* find_log_op(std::string_view name) const;
  const EvalOp* find_eval_op(std::string_view name) const;

  /// The names of the ops that were returned, for messages.
  std::string names() const;
};

}  // namespace stepop
