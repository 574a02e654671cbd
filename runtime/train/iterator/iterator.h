#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/config/registry.h"
#include "runtime/data/batch.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/iterator/step_ops.h"

namespace stepop {

/// The training logic of a model: what a user writes. The runtime builds networks and datasets,
/// moves batches to the device, sets train and evaluation mode by the split and gradients by the
/// op.
class Iterator : public Hook {
 public:
  /// `context` outlives the iterator.
  explicit Iterator(const Context& context) : context_(context) {}

  /// Runs the forward pass on one batch and returns closures, of which the runtime calls those that
  /// are due. Called at most once a step for each split, and only when an op of it is due.
  virtual StepOps step_op(const Batch& batch) = 0;

  /// For --check: a table of what a training batch goes through, where the iterator has something
  /// to say that its ops do not show. Called with gradients disabled.
  virtual std::string plan(const Batch& /*batch*/) { return {}; }

  /// Callbacks that this iterator's evaluations run beside those of the config: name -> class.
  virtual OrderedMap<std::string> eval_callbacks() const { return {}; }

  /// Log ops of the split train that this iterator's runs have beside those of the config: the name
  /// of each -> the path of the key that says when it is due, by default after each epoch.
  virtual OrderedMap<std::string> log_ops() const { return {}; }

 protected:
  const Context& context() const { return context_; }
  const Config& config() const { return context_.config; }

  /// The split of the batch at hand: `train`, `validation`, ....
  const std::string& get_split() const { return context_.position.split; }
  /// Training steps that are complete: in `train_op` those before this one, in `log_op` with it.
  int64_t global_step() const { return context_.position.global_step; }
  /// Epochs that are complete.
  int64_t epoch_step() const { return context_.position.epoch; }
  /// Batches of this epoch that are complete.
  int64_t batch_step() const { return context_.position.batch; }
  /// The batch of a split that stays the same in all logs; `fixed_example_indices` chooses it.
  const Batch& get_fixed_examples(const std::string& split) const;

 private:
  const Context& context_;
};

using IteratorRegistry = Registry<std::unique_ptr<Iterator>(const Config&, const Context&)>;
IteratorRegistry& iterators();

}  // namespace stepop

/// Registers an iterator that has a constructor from `const Context&`.
#define STEPOP_REGISTER_ITERATOR(Class, ...)                                                   \
  STEPOP_REGISTER(                                                                             \
      ::stepop::iterators(), #Class,                                                           \
      [](const ::stepop::Config&, const ::stepop::Context& context)                            \
          -> std::unique_ptr<::stepop::Iterator> { return std::make_unique<Class>(context); }, \
      __VA_ARGS__)
