#pragma once

#include <functional>
#include <memory>
#include <string>

#include "eval_out/callbacks/callback.h"
#include "eval_out/eval_outputs.h"
#include "iterators/extensible/ports.h"
#include "iterators/extensible/state.h"
#include "runtime/core/config/registry.h"
#include "runtime/core/log/logs.h"

namespace stepop::extensible {

/// Measures what an evaluation makes: one of `eval/evaluators`. A class of your own is registered
/// and named by `type`, as an injector is. It only reads keys of the state.
///
/// A metric of the whole split is a function of the class, by this name:
///
///   static Scalars over_split(const CallbackArguments& arguments);
///
/// It is called when all batches are written, also by `stepop eval` much later, and so without an
/// object: `arguments.data_out` has what `evaluate` wrote, `arguments.params` the evaluator's
/// options, `arguments.name` its name. What it returns is logged below that name.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// Called with each batch, behind all steps, without gradients. What it finds for each example
  /// goes into `made` under its `name`: a label [B], whose mean over the split is logged, or
  /// outputs such as `<name>/features`, which the file keeps.
  virtual void evaluate(const StepState& state, const Iteration& iteration, const std::string& name,
                        EvalOutputs& made) = 0;
};

/// What is registered of a class.
struct EvaluatorKind {
  std::function<std::unique_ptr<Evaluator>(const Config&, Ports&)> make;
  /// Empty when it has no metric of the whole split.
  std::function<Scalars(const CallbackArguments&)> over_split;
};

template <class Class>
EvaluatorKind evaluator_kind() {
  EvaluatorKind kind;
  kind.make = [](const Config& params, Ports& ports) -> std::unique_ptr<Evaluator> {
    return std::make_unique<Class>(params, ports);
  };
  if constexpr (requires(const CallbackArguments& arguments) { Class::over_split(arguments); }) {
    kind.over_split = &Class::over_split;
  }
  return kind;
}

using EvaluatorRegistry = Registry<EvaluatorKind()>;
EvaluatorRegistry& evaluators();

}  // namespace stepop::extensible

/// Registers an evaluator that has a constructor from `(const Config& params, Ports& ports)`.
#define STEPOP_REGISTER_EVALUATOR(name, Class, ...)          \
  STEPOP_REGISTER(::stepop::extensible::evaluators(), #name, \
                  &::stepop::extensible::evaluator_kind<Class>, __VA_ARGS__)
