#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/components/registry.h"
#include "runtime/data/batch.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/iterator/step_ops.h"

namespace stepop {

/// The training logic of a model, which the user writes. The runtime builds networks and datasets,
/// moves batches to the device, sets train and evaluation mode by the split, and gradients by the
/// op.
class Iterator : public Hook {
 public:
  /// `context` outlives the iterator.
  explicit Iterator(const Context& context) : context_(context) {}

  /// Runs the forward pass on one batch and returns closures; the runtime calls the closures that
  /// are due. Called at most once per step for each split, and only when one of the split's ops is
  /// due.
  virtual StepOps step_op(const Batch& batch) = 0;

  /// For --check: a table of the way of a training batch, if the iterator can show more than its
  /// ops do. Called with gradients disabled.
  virtual std::string plan(const Batch& /*batch*/) { return {}; }

  /// Callbacks of this iterator's evaluations, besides those of the config: name -> class.
  virtual OrderedMap<std::string> eval_callbacks() const { return {}; }

  /// Log ops of the split train in this iterator's runs, besides those of the config: name -> path
  /// of the key that says when the op is due, by default after each epoch.
  virtual OrderedMap<std::string> log_ops() const { return {}; }

 protected:
  const Context& context() const { return context_; }
  const Config& config() const { return context_.config; }

  /// The split of the current batch: `train`, `validation`, ....
  const std::string& get_split() const { return context_.position.split; }
  /// Complete training steps: in `train_op` without the current step, in `log_op` with it.
  int64_t global_step() const {
    StepReads::note("global_step()");
    return context_.position.global_step;
  }
  /// Complete epochs.
  int64_t epoch_step() const { return context_.position.epoch; }
  /// Complete batches of this epoch.
  int64_t batch_step() const { return context_.position.batch; }
  /// The batch of a split that stays the same in all logs; `fixed_example_indices` chooses it.
  const Batch& get_fixed_examples(const std::string& split) const;

 private:
  const Context& context_;
};

using IteratorRegistry = Registry<std::unique_ptr<Iterator>(const Config&, const Context&)>;
IteratorRegistry& iterators();

/// An iterator by its constructor: from its `Params`, which stand at the top of the config, and the
/// context; from the context alone without `Params`.
template <class T>
std::unique_ptr<Iterator> make_iterator(const Context& context) {
  if constexpr (TakesParams<T, const Context&>) {
    return std::make_unique<T>(read_parameters<typename T::Params>(context.config), context);
  } else {
    return std::make_unique<T>(context);
  }
}

}  // namespace stepop

/// Registers an iterator with a constructor from its `Params`, if it has some, and
/// `const Context&`.
#define STEPOP_REGISTER_ITERATOR(Class, ...)                          \
  STEPOP_REGISTER(                                                    \
      ::stepop::iterators(), #Class,                                  \
      [](const ::stepop::Config&, const ::stepop::Context& context) { \
        return ::stepop::make_iterator<Class>(context);               \
      },                                                              \
      ::stepop::about_class<Class>(__VA_ARGS__))
