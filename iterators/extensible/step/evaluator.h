#pragma once

#include <functional>
#include <memory>
#include <string>

#include "eval_out/callbacks/callback.h"
#include "eval_out/eval_outputs.h"
#include "iterators/extensible/step/ports.h"
#include "iterators/extensible/step/state.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/log/logs.h"

namespace stepop::extensible {

/// Measures the outputs of an evaluation: an entry of `eval/evaluators`. You register your own
/// class and name it by `type`, like an injector. An evaluator only reads keys of the state.
///
/// A metric of the whole split is a function of the class, by this name:
///
///   static Scalars over_split(const CallbackArguments& arguments);
///
/// The function is called when all batches are written, possibly much later by `stepop eval`, and
/// so without an object: `arguments.data_out` has the outputs of `evaluate`, `arguments.params` the
/// evaluator's options, `arguments.name` its name. The returned scalars are logged below that name.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// Called with each batch, after all steps, without gradients. The values for each example go
  /// into `made` under the evaluator's `name`: a label [B], whose mean over the split is logged, or
  /// outputs such as `<name>/features`, which the file keeps.
  virtual void evaluate(const StepState& state, const Iteration& iteration, const std::string& name,
                        EvalOutputs& made) = 0;
};

/// The registered functions of an evaluator class.
struct EvaluatorKind {
  std::function<std::unique_ptr<Evaluator>(const Config&, Ports&)> make;
  /// Empty when the class has no metric of the whole split.
  std::function<Scalars(const CallbackArguments&)> over_split;
};

template <class Class>
EvaluatorKind evaluator_kind() {
  EvaluatorKind kind;
  kind.make = [](const Config& params, Ports& ports) -> std::unique_ptr<Evaluator> {
    return make_component<Class>(params, ports);
  };
  if constexpr (requires(const CallbackArguments& arguments) { Class::over_split(arguments); }) {
    kind.over_split = &Class::over_split;
  }
  return kind;
}

using EvaluatorRegistry = Registry<EvaluatorKind()>;
EvaluatorRegistry& evaluators();

}  // namespace stepop::extensible

/// Registers an evaluator with a constructor as of an injector.
#define STEPOP_REGISTER_EVALUATOR(name, Class, ...)             \
  STEPOP_REGISTER(::stepop::extensible::evaluators(), #name,    \
                  &::stepop::extensible::evaluator_kind<Class>, \
                  ::stepop::about_class<Class>(__VA_ARGS__))
