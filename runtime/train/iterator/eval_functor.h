#pragma once

#include <memory>

#include "runtime/core/components/registry.h"
#include "runtime/data/batch.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/iterator/iterator.h"

namespace stepop {

/// Replaces the iterator's evaluation of trained networks, in evaluations without a training:
/// `eval_functor: Predict` in the config. Networks are in evaluation mode, gradients are off.
class EvalFunctor {
 public:
  /// `context` outlives the functor.
  explicit EvalFunctor(const Context& context) : context_(context) {}
  virtual ~EvalFunctor() = default;

  /// Returns the outputs to be written for the examples of one batch.
  virtual EvalOutputs operator()(const Batch& batch) = 0;

  /// Callbacks that run besides those of the config, in place of the iterator's callbacks: name ->
  /// class.
  virtual OrderedMap<std::string> eval_callbacks() const { return {}; }

 protected:
  const Context& context() const { return context_; }

 private:
  const Context& context_;
};

using EvalFunctorRegistry = Registry<std::unique_ptr<EvalFunctor>(const Config&, const Context&)>;
EvalFunctorRegistry& eval_functors();

/// An iterator with a single op, the functor of the config's `eval_functor`; the config may refer
/// to the op by any name.
std::unique_ptr<Iterator> iterator_of_functor(const Config& config, const Context& context);

}  // namespace stepop

/// Registers a functor with a constructor from `(const Config& params, const Context&)`.
#define STEPOP_REGISTER_EVAL_FUNCTOR(Class, ...)                                       \
  STEPOP_REGISTER(                                                                     \
      ::stepop::eval_functors(), #Class,                                               \
      [](const ::stepop::Config& params,                                               \
         const ::stepop::Context& context) -> std::unique_ptr<::stepop::EvalFunctor> { \
        return ::stepop::make_component<Class>(params, context);                       \
      },                                                                               \
      ::stepop::about_class<Class>(__VA_ARGS__))
