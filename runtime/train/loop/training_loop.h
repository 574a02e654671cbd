#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/measure/profile.h"
#include "runtime/train/checks/update_watch.h"
#include "runtime/train/loop/agreement.h"
#include "runtime/train/loop/data_wait.h"
#include "runtime/train/loop/disk_need.h"
#include "runtime/train/loop/ending.h"
#include "runtime/train/loop/hook_calls.h"
#include "runtime/train/loop/reporter.h"
#include "runtime/train/loop/run_ahead.h"
#include "runtime/train/loop/run_evaluations.h"
#include "runtime/train/loop/training_logs.h"
#include "runtime/train/networks/finite_statistics.h"
#include "runtime/train/networks/shared_buffers.h"
#include "runtime/train/run/live_change.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/session/logged_numbers.h"
#include "runtime/train/session/non_finite_record.h"
#include "runtime/train/session/run_checkpoints.h"
#include "runtime/train/session/session.h"
#include "runtime/train/step/captured_step.h"
#include "runtime/train/step/scalar_means.h"
#include "runtime/train/step/split_step.h"

namespace stepop {

/// The training: batches, their train ops, and the logs, checkpoints and evaluations that are due,
/// until there is a reason to stop. Begins at the session's position, which may have been restored.
class TrainingLoop {
 public:
  /// Settings of a start besides the config.
  struct Start {
    std::string time;  ///< Names the evaluations of this start.
    std::string git;
    /// The time to stop with everything saved, to be resumed later.
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    /// Whether the training may end here to resume with a changed config (LiveChange, a file in the
    /// run's folder).
    bool takes_changes = false;
  };

  /// All arguments must outlive the loop.
  TrainingLoop(Session& session, const RunDirectory& directory, Reporter& reporter, Start start);

  /// Adds a hook besides the iterator and the hooks of the config; the hook must outlive the loop.
  void add_hook(Hook& hook, std::string name = "of the program") {
    hooks_.add(std::move(name), hook);
  }

  /// Throws the exceptions of ops, hooks, datasets and the disk, after `at_exception` of every
  /// hook. It becomes an Error when it is no std::exception, or when there is more to say: what was
  /// saved, or which command resumes the run (ErrorWithCommand).
  StopReason run();

  /// Where the training is to continue, once `run` has returned kRewind.
  const Rewind& rewind() const { return *rewind_; }

  /// The number of callbacks that failed in evaluations of this run.
  int failed_callbacks() const { return failed_callbacks_; }

 private:
  void loop();
  void begin();
  void train_step();
  void begin_step(const Elapsed& next);
  int64_t train_examples(int64_t batches) const;
  int64_t run_batch(SplitStep& train, int64_t batches);
  void end_step();
  void train_batch(SplitStep& train, int64_t batches, const Batch& batch);
  void run_train_ops(SplitStep& train, const Batch& batch, int64_t parts);
  void run_logs(const Elapsed& now);
  void finish_step(const Elapsed& now);

  StopReason stop_reason() const;
  bool is_at_end() const;
  void throw_if_asked_to_stop() const;
  void throw_if_asked_here() const;
  Agreement::View own_view() const;
  Agreement::View view() const;
  void agree();
  Agreement::View agree(const Agreement::View& own);
  bool config_changes();

  void log_between_steps(const Elapsed& now);
  void end_by_failed_log();
  void take_requests(const Elapsed& now);
  void take_rewind();
  int64_t parts_of_batches() const { return settings_.splits_batches ? position_.batch_parts : 1; }
  bool splits_after(const std::exception& error);
  void add_requests(Agreement::View& asked);

  void show_warnings();
  void warn_of_data();
  void warn_of_disk();
  void read_non_finite();
  int64_t skipped_updates() const;
  std::string bad_data_of_step(const Batch& batch) const;
  void measure_statistics();
  void save_checkpoint(const std::vector<std::string>& evaluations);
  void write_checkpoint();
  void run_evaluations(bool was_interrupted = false);
  void run_evaluation(const Evaluation& evaluation, const std::string& folder);
  std::optional<OrderedMap<double>> scalars_before(const std::string& folder);
  void end_evaluations();
  void agree_after_evaluations();
  void wait_for_other_evaluations();

  [[noreturn]] void fail();
  void save_what_is_whole();

  Elapsed elapsed();

  Session& session_;
  const Settings& settings_;
  const Context& context_;
  const RunDirectory& directory_;
  Reporter& reporter_;
  const Start start_;
  RunEvaluations evaluations_;
  Profile* const profile_;  ///< Null when nothing is measured.
  StepClock& clock_;
  Position& position_;
  int64_t batches_per_epoch_;
  HookCalls hooks_;
  SplitSteps splits_;
  std::optional<UpdateWatch> update_watch_;
  std::unique_ptr<CapturedStep> captured_step_;  ///< Null without `cuda_graph`.
  OrderedMap<Scalars> results_;  ///< Results of the train ops, for the current batch.
  std::optional<Rewind> rewind_;
  bool is_in_train_op_ = false;
  ScalarMeans::Share share_;   ///< Of the batch at hand.
  double share_of_step_ = 1;   ///< This process's part of the last step.
  int64_t batch_of_step_ = 0;  ///< From 0; counts with `accumulate`.
  bool asked_for_checkpoint_ = false;
  bool asked_for_evaluation_ = false;
  bool was_stopped_ = false;  ///< By a hook, before this start.
  StopReason reason_;
  int64_t first_step_ = 0;
  RunCheckpoints checkpoints_;
  LoggedNumbers numbers_;
  DataWait data_wait_;
  DiskNeed disk_need_;
  NonFiniteRecorder non_finite_;
  std::string bad_data_;  ///< Of the first update that was left out since the last log.
  LiveChange change_;
  World& world_;
  Agreement agreement_;
  SharedBuffers shared_buffers_;
  TrainingLogs logs_;
  FiniteStatistics finite_statistics_;
  RunAhead run_ahead_;
  int failed_callbacks_ = 0;
  /// True while the dataset is asked for the first batch of a step: the state is still that between
  /// two steps, and can be saved.
  bool is_whole_ = false;
  std::string saved_;  ///< A text about what was saved for an error; empty for nothing.
  /// The time of the last check for what is due. Periods that begin while the loop waits for the
  /// disk or evaluates are found by the next step.
  Elapsed last_;
  double seconds_before_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace stepop
