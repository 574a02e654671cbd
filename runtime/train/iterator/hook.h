#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/registry.h"
#include "runtime/core/log/logs.h"
#include "runtime/data/batch.h"
#include "runtime/train/iterator/context.h"

namespace stepop {

/// Observes a training, and may ask for things. The order of all calls is pinned in
/// tests/runtime/train/loop/order_test.cpp. An exception that a hook throws ends the training as
/// any other. An iterator is a hook; others are registered, and named by `hooks` in the config.
///
/// What a hook changes of what is tracked survives a kill: hooks up to `after_epoch` are parts of
/// the training, so their results are in the checkpoint that follows. The three that follow a
/// checkpoint, `after_checkpoint`, `before_evaluation` and `after_evaluation`, and `after_log` with
/// the numbers of an evaluation, are called again by a run that resumes from that checkpoint, with
/// the state that they found at first. How often one saves and evaluates changes no training: in
/// these, LibTorch's random generators are forked, as in logs.
class Hook {
 public:
  virtual ~Hook() = default;

  /// Weights and all that is tracked are as this start begins with them, new or restored; no batch
  /// was seen yet, not even by the checks before a training. Called in each start of a training,
  /// and of an iterator also in an evaluation alone, there for each checkpoint. What it changes of
  /// what is tracked makes a resume differ from a run that nothing disturbed.
  virtual void initialize() {}
  /// The training begins or goes on: the run has its folder, `context.run.folder`.
  virtual void before_training() {}
  /// It has ended, or stopped, without an error; all is saved.
  virtual void after_training() {}

  /// `epoch` counts from 0.
  virtual void before_epoch(int64_t epoch) { (void)epoch; }
  /// `step` is the number of complete steps: N - 1 before the N-th step, N after it.
  virtual void before_step(int64_t step) { (void)step; }
  /// A batch of training examples is on the device of the run, and no op has seen it: once a step,
  /// and with `accumulate` once for each batch of the step.
  virtual void before_batch(const Batch& batch) { (void)batch; }
  /// `results`: by their names, `train_op`, what the train ops returned that were due.
  virtual void after_batch(const Batch& batch, const OrderedMap<Scalars>& results) {
    (void)batch, (void)results;
  }
  /// Numbers were logged, by their full names: of log ops and train ops, `train/log_op/loss`; or of
  /// an evaluation, `validation/eval_op/accuracy/accuracy`.
  virtual void after_log(int64_t step, const OrderedMap<double>& scalars) {
    (void)step, (void)scalars;
  }
  virtual void after_step(int64_t step) { (void)step; }
  virtual void after_epoch(int64_t epoch) { (void)epoch; }
  /// The tensors are copied; the file `path` is written in the background, and is there before an
  /// evaluation of these weights begins.
  virtual void after_checkpoint(const std::string& path) { (void)path; }
  virtual void before_evaluation(int64_t step) { (void)step; }
  virtual void after_evaluation(int64_t step) { (void)step; }
  /// The training ends by `error`, which is thrown on after this returns.
  virtual void at_exception(const std::exception& error) { (void)error; }

 protected:
  // What is asked for happens at the end of the step at hand, in this order; what is asked for
  // between two steps, at the end of the next one. Only a stop that is asked for in or after an
  // evaluation comes at once: these weights were evaluated.

  /// Every op of `log_ops` that was not logged at this step.
  void request_log() { requests_.log = true; }
  void request_checkpoint() { requests_.checkpoint = true; }
  /// Nothing, when the config evaluates nothing.
  void request_evaluation() { requests_.evaluation = true; }
  /// Ends the training as its last step would, with an evaluation; the run is then over, and a
  /// resume goes on only with a config that was changed. `reason` is shown:
  /// `the loss is below 0.01`. Of several that ask, the first counts.
  void request_stop(std::string reason) {
    requests_.stop = reason.empty() ? "it asked for that" : std::move(reason);
  }

 private:
  friend class HookCalls;

  struct Requests {
    bool log = false;
    bool checkpoint = false;
    bool evaluation = false;
    std::string stop;  ///< Empty for none.
  };

  Requests requests_;
};

using HookRegistry = Registry<std::unique_ptr<Hook>(const Config& params, const Context& context)>;
HookRegistry& hooks();

}  // namespace stepop

/// Registers a Hook with a constructor `Class(const stepop::Config& params, const stepop::Context&
/// context)`; `params` is its part of the config, and `context` outlives it.
#define STEPOP_REGISTER_HOOK(Class, ...)                                                           \
  STEPOP_REGISTER(                                                                                 \
      ::stepop::hooks(), #Class,                                                                   \
      [](const ::stepop::Config& params, const ::stepop::Context& context)                         \
          -> std::unique_ptr<::stepop::Hook> { return std::make_unique<Class>(params, context); }, \
      __VA_ARGS__)
