#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/log/logs.h"
#include "runtime/data/batch.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/when/logged_metric.h"

namespace stepop {

/// Observes a training, and may make requests. The order of all calls is pinned in
/// tests/runtime/train/loop/order_test.cpp. An exception of a hook ends the training like any other
/// exception. An iterator is a hook; other hooks are registered, and named by `hooks` in the
/// config. Where a hook of the config has a trigger, `when: 500`, it gets before_step,
/// before_batch, after_batch and after_step in these steps alone.
///
/// Changes that a hook makes to tracked objects survive a kill: hooks up to `after_epoch` are parts
/// of the training, so their results are in the next checkpoint. Four calls follow a checkpoint:
/// `after_checkpoint`, `before_evaluation`, `after_evaluation`, and `after_log` with the numbers of
/// an evaluation. A run that resumes from that checkpoint makes these calls again, with the same
/// state as the first time. The frequency of checkpoints and evaluations changes no training:
/// during these calls, LibTorch's random generators are forked, as in logs.
class Hook {
 public:
  virtual ~Hook() = default;

  /// The logged numbers that the hook waits for: a name that nothing gives is an error before a run
  /// has its folder.
  virtual std::vector<WatchedNumber> watched_numbers() const { return {}; }

  /// Weights and all tracked objects have the values with which this start begins, new or restored;
  /// no batch was seen yet, not even by the checks before a training. Called in each start of a
  /// training; for an iterator also in an evaluation alone, for each checkpoint. If it changes
  /// tracked objects, a resumed run differs from an undisturbed run.
  virtual void initialize() {}
  /// The training begins or resumes: the run has its folder, `context.run.folder`.
  virtual void before_training() {}
  /// The training has ended, or stopped, without an error; everything is saved.
  virtual void after_training() {}

  /// `epoch` counts from 0.
  virtual void before_epoch(int64_t epoch) { (void)epoch; }
  /// `step` is the number of complete steps: N - 1 before the N-th step, N after it.
  virtual void before_step(int64_t step) { (void)step; }
  /// A batch of training examples is on the device of the run, before any op: once per step, and
  /// with `accumulate` once for each batch of the step.
  virtual void before_batch(const Batch& batch) { (void)batch; }
  /// `results`: the values that the train ops returned, by the ops' names, `train_op`.
  virtual void after_batch(const Batch& batch, const OrderedMap<Scalars>& results) {
    (void)batch, (void)results;
  }
  /// Numbers were logged, with their full names: from log ops and train ops, `train/log_op/loss`,
  /// or from an evaluation, `validation/eval_op/accuracy/accuracy`.
  virtual void after_log(int64_t step, const OrderedMap<double>& scalars) {
    (void)step, (void)scalars;
  }
  /// A log is due after the step: scalars, texts and pictures to be logged with it, as
  /// `hooks/<name>/<key>`. Scalars are averaged over the processes.
  virtual Logs log(int64_t step) { return (void)step, Logs{}; }
  virtual void after_step(int64_t step) { (void)step; }
  virtual void after_epoch(int64_t epoch) { (void)epoch; }
  /// The tensors are copied; the file `path` is written in the background, and exists before an
  /// evaluation of these weights begins.
  virtual void after_checkpoint(const std::string& path) { (void)path; }
  virtual void before_evaluation(int64_t step) { (void)step; }
  virtual void after_evaluation(int64_t step) { (void)step; }
  /// The training ends because of `error`, which is rethrown after this returns.
  virtual void at_exception(const std::exception& error) { (void)error; }

 protected:
  // Requests are fulfilled at the end of the current step, in this order; requests between two
  // steps at the end of the next step. Only a stop that is requested in or after an evaluation
  // takes effect at once: these weights were evaluated.

  /// Logs every op of `log_ops` that was not logged at this step.
  void request_log() { requests_.log = true; }
  void request_checkpoint() { requests_.checkpoint = true; }
  /// Does nothing when the config has no evaluation.
  void request_evaluation() { requests_.evaluation = true; }
  /// The training goes back to its last checkpoint, as a resume does, and continues from there with
  /// the batches behind this step's: those since the checkpoint are left out. In one process; does
  /// nothing while there is no checkpoint. `reason` is shown. A run that is killed before its next
  /// checkpoint comes to the same step again, where the hook has to ask again.
  void request_rewind(std::string reason) { requests_.rewind = std::move(reason); }
  /// Ends the training as its last step would, with an evaluation. The run is then over; a resume
  /// continues it only with a changed config. `reason` is shown: `the loss is below 0.01`. If
  /// several hooks request a stop, the first counts.
  void request_stop(std::string reason) {
    requests_.stop = reason.empty() ? "it asked for that" : std::move(reason);
  }

 private:
  friend class HookCalls;

  struct Requests {
    bool log = false;
    bool checkpoint = false;
    bool evaluation = false;
    std::string stop;    ///< Empty for none.
    std::string rewind;  ///< Empty for none.
  };

  Requests requests_;
};

using HookRegistry = Registry<std::unique_ptr<Hook>(const Config& params, const Context& context)>;
HookRegistry& hooks();

}  // namespace stepop

/// Registers a Hook with a constructor `Class(const stepop::Config& params, const stepop::Context&
/// context)`; `params` is its part of the config, and `context` outlives it.
#define STEPOP_REGISTER_HOOK(Class, ...)                                        \
  STEPOP_REGISTER(                                                              \
      ::stepop::hooks(), #Class,                                                \
      [](const ::stepop::Config& params,                                        \
         const ::stepop::Context& context) -> std::unique_ptr<::stepop::Hook> { \
        return ::stepop::make_component<Class>(params, context);                \
      },                                                                        \
      ::stepop::about_class<Class>(__VA_ARGS__))
