#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/logs.h"
#include "runtime/train/step/split_step.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// The log ops of a training; each op runs once at each step where it is due.
class LogOps {
 public:
  /// Both must outlive this.
  LogOps(const Settings& settings, SplitSteps& splits)
      : ops_(settings.log_ops),
        plain_(settings.plain_log),
        splits_(splits),
        logged_at_(ops_.size() + 1, -1) {}

  /// Selects ops: those that are due; also those with `at_end`; all.
  enum class Which { kDue, kDueAtEnd, kAll };

  /// Whether a selected op has not run yet at the step of `now`, or the log without an op,
  /// Settings::plain_log, was not written. `before` is the time of the previous check.
  bool is_any_due(const Elapsed& before, const Elapsed& now, Which which) const;

  /// Runs the ops that are due; returns their results by full name, `train/log_op`, and nothing
  /// when only the log without an op is due. An op that throws is the last op; its exception waits
  /// for `rethrow_failure()`: the step is complete, and can be saved before the training ends.
  OrderedMap<Logs> run_due(const Elapsed& before, const Elapsed& now, Which which);

  /// Runs the ops of the split train that will be due after this step, on one of the first batches
  /// of the step, of `examples` examples; `run_due` then logs means over all batches. An exception
  /// waits as in `run_due`.
  void run_part(const Elapsed& before, const Elapsed& next, Which which, double examples);
  /// Forgets the first batches of the step before.
  void begin_step() { parts_.clear(); }
  /// Whether the numbers of an op are means over all batches of this step.
  bool has_parts(const std::string& op) const { return parts_.contains(op); }
  /// The number of examples in the last batch of the step.
  void set_examples(double examples) { examples_ = examples; }

  bool has_failed() const { return failure_ != nullptr; }
  void rethrow_failure();

 private:
  struct PartLogs {
    Scalars scalars;
    double examples = 0;
  };

  void take_batches(const Elapsed& before, const Elapsed& now, Which which);
  void add_parts(const std::string& op, Logs& logs) const;
  bool is_due(size_t op, const Elapsed& before, const Elapsed& now, Which which) const;

  const std::vector<ScheduledOp>& ops_;
  const Trigger& plain_;
  SplitSteps& splits_;
  /// The last step of each op, and of the log without an op; -1 for none.
  std::vector<int64_t> logged_at_;
  OrderedMap<PartLogs> parts_;  ///< Of the first batches of this step, by full name.
  double examples_ = 0;         ///< Of the last batch.
  std::exception_ptr failure_;
};

}  // namespace stepop
