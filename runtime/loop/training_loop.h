#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/loop/checks/update_watch.h"
#include "runtime/loop/evaluation.h"
#include "runtime/loop/reporter.h"
#include "runtime/loop/run_checkpoints.h"
#include "runtime/loop/session.h"
#include "runtime/loop/stop_reason.h"
#include "runtime/measure/profile.h"
#include "runtime/run/run_directory.h"
#include "runtime/step/split_step.h"

namespace stepop {

/// Trains: a batch, its train ops, the logs, checkpoints and evaluations that are due, until there
/// is a reason to stop. Goes on from the session's position, which
/// may have been restored.
class TrainingLoop {
 public:
  /// What a start is told beside its config.
  struct Start {
    std::string time;  ///< Names the evaluations of this start.
    std::string git;
    /// When to end by itself, with everything saved.
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  };

  /// All must outlive the loop.
  TrainingLoop(Session& session, const RunDirectory& directory, Reporter& reporter, Start start);
  ~TrainingLoop();

  /// A further observer beside the iterator; must outlive the loop.
  void add_hook(Hook& hook) { hooks_.push_back(&hook); }

  /// Throws what an op, a hook, a dataset or the disk threw, after `at_exception` of every hook.
  StopReason run();

  /// Callbacks that failed in evaluations of this run.
  int failed_callbacks() const { return failed_callbacks_; }

 private:
  StopReason stop_reason() const;
  void throw_if_asked_to_stop() const;
  void loop();
  void train_step();
  void read_non_finite();
  void run_logs_at_start();
  void observe(const OrderedMap<double>& scalars);
  void check_metrics() const;
  void run_due_logs(const Elapsed& now);
  void fail(const std::exception& error);
  void save_checkpoint_once(const std::string& evaluation_folder);
  void run_evaluation(const std::string& folder);
  void finish_interrupted_evaluation();
  void finish_step(const Elapsed& now);

  SplitStep& split_step(const std::string& split);
  bool is_log_due(const Trigger& when, const Elapsed& now) const;
  Elapsed elapsed();
  template <class Call>
  void for_each_hook(const Call& call) {
    const Span span(profile_, "hooks");
    for (Hook* hook : hooks_) call(*hook);
  }

  Session& session_;
  const Settings& settings_;
  const Context& context_;
  const RunDirectory& directory_;
  Reporter& reporter_;
  const Start start_;
  Evaluation evaluation_;
  Profile* const profile_;  ///< Null when nothing is measured.
  StepClock& clock_;
  Position& position_;
  int64_t batches_per_epoch_;
  std::vector<Hook*> hooks_;
  std::optional<UpdateWatch> update_watch_;
  std::map<std::string, std::unique_ptr<SplitStep>> split_steps_;
  std::set<std::string> seen_scalars_;  ///< Full names of what was logged in this start.
  StopReason reason_;
  int64_t first_step_ = 0;
  RunCheckpoints checkpoints_;
  int failed_callbacks_ = 0;
  /// Where the step before was looked at for what is due. Periods that begin while the loop waits
  /// for the disk or evaluates are seen by the next step.
  Elapsed last_;
  /// The same for evaluations: one that takes longer than its period is not made at each step.
  Elapsed last_of_evaluation_;
  State random_before_step_;  ///< Of the generators, for the record of a NaN.
  double seconds_before_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace stepop
