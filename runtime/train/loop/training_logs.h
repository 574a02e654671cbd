#pragma once

#include <functional>
#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/train/loop/hook_calls.h"
#include "runtime/train/loop/log_ops.h"
#include "runtime/train/loop/reporter.h"
#include "runtime/train/networks/shared_buffers.h"
#include "runtime/train/session/logged_numbers.h"
#include "runtime/train/session/session.h"
#include "runtime/train/session/telemetry.h"
#include "runtime/train/step/split_step.h"

namespace stepop {

/// The logs of a training: runs the log ops that are due, reports their numbers beside what was
/// measured, and passes all numbers on to whatever follows them.
class TrainingLogs {
 public:
  /// All must outlive the logs.
  struct Parts {
    Session& session;
    SplitSteps& splits;
    HookCalls& hooks;
    SharedBuffers& shared_buffers;
    LoggedNumbers& numbers;
    Reporter& reporter;
  };
  using Which = LogOps::Which;

  /// `now` sets the position's time and returns it. `show_warnings` is called before numbers that
  /// could be of a training that went wrong.
  TrainingLogs(const Parts& parts, std::function<Elapsed()> now,
               std::function<void()> show_warnings);

  /// Called before the first batch of a step from `before` to `next`.
  void begin_step(const Elapsed& before, const Elapsed& next);
  /// Called after the train ops of a part of the step: runs the log ops that will be due after the
  /// step, as after it, unless this part is the last.
  void run_part();
  /// Called after the last batch of the step, of `examples` examples, in a process that had this
  /// `share` of the step's examples.
  void end_step(double examples, double share);

  bool is_any_due(const Elapsed& before, const Elapsed& now, Which which) const {
    return log_ops_.is_any_due(before, now, which);
  }
  /// Runs, reports and passes on what is due.
  void run(const Elapsed& before, const Elapsed& now, Which which = Which::kDue);
  /// Logs what is due only because the training ends here. The training may be continued with a
  /// later end, and is then the training that never stopped: what such a log changes is restored.
  void run_at_end(const Elapsed& before, const Elapsed& now);
  /// Logs outside of a step, with the batches of the next step, which must not depend on it: random
  /// numbers, running means and an iterator's counts are restored.
  void run_between_steps(const Elapsed& before, const Elapsed& now, Which which);

  /// Passes the numbers of an evaluation on, which follow a checkpoint.
  void observe_evaluation(const OrderedMap<double>& scalars);

  /// Whether a log op threw, in this or another process.
  bool has_failed() const { return has_failed_; }
  /// Throws the exception of a log op of this process, if any.
  void rethrow_failure() { log_ops_.rethrow_failure(); }

  Telemetry& telemetry() { return telemetry_; }

 private:
  OrderedMap<double> report_due(const Elapsed& before, const Elapsed& now, Which which);
  void share(OrderedMap<Logs>& logs, const OrderedMap<Logs>& results);
  void observe(const OrderedMap<double>& scalars);

  Session& session_;
  const Settings& settings_;
  const Context& context_;
  SplitSteps& splits_;
  HookCalls& hooks_;
  SharedBuffers& shared_buffers_;
  LoggedNumbers& numbers_;
  Reporter& reporter_;
  World& world_;
  Profile* const profile_;  ///< Null when nothing is measured.
  const std::function<Elapsed()> now_;
  const std::function<void()> show_warnings_;
  LogOps log_ops_;
  Telemetry telemetry_;
  /// Runs log ops on a batch of this step that is not its last; empty when no log is due.
  std::function<void()> run_part_;
  double share_of_step_ = 1;  ///< This process's part of the last step.
  bool has_failed_ = false;
};

}  // namespace stepop
