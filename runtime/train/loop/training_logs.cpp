#include "runtime/train/loop/training_logs.h"

#include <algorithm>
#include <utility>

#include "runtime/core/measure/profile.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/loop/shared_logs.h"
#include "runtime/train/step/snapshot.h"

namespace stepop {

TrainingLogs::TrainingLogs(const Parts& parts, std::function<Elapsed()> now,
                           std::function<void()> show_warnings)
    : session_(parts.session),
      settings_(session_.settings()),
      context_(session_.context()),
      splits_(parts.splits),
      hooks_(parts.hooks),
      shared_buffers_(parts.shared_buffers),
      numbers_(parts.numbers),
      reporter_(parts.reporter),
      world_(context_.world),
      profile_(context_.profile.get()),
      now_(std::move(now)),
      show_warnings_(std::move(show_warnings)),
      log_ops_(settings_, splits_),
      telemetry_(context_, settings_.telemetry) {}

void TrainingLogs::begin_step(const Elapsed& before, const Elapsed& next) {
  const Which which = next.step >= settings_.num_steps ? Which::kDueAtEnd : Which::kDue;
  const bool is_due = log_ops_.is_any_due(before, next, which);
  telemetry_.begin_step(is_due, before, next);
  log_ops_.begin_step();
  run_part_ = {};
  if (!is_due) return;
  run_part_ = [this, before, next, which] {
    const Span span(profile_, "logging");
    Position& position = session_.position();
    StepClock& clock = session_.clock();
    ++position.global_step;  // the ops see the number of this step
    clock.logs_part = true;
    log_ops_.run_part(before, next, which, static_cast<double>(clock.batch_examples));
    clock.logs_part = false;
    --position.global_step;
  };
}

void TrainingLogs::run_part() {
  if (run_part_ && !session_.clock().is_last_micro_batch()) run_part_();
}

void TrainingLogs::end_step(double examples, double share) {
  log_ops_.set_examples(examples);
  share_of_step_ = share;
}

void TrainingLogs::run(const Elapsed& before, const Elapsed& now, Which which) {
  observe(report_due(before, now, which));
}

void TrainingLogs::run_at_end(const Elapsed& before, const Elapsed& now) {
  if (!is_any_due(before, now, Which::kDueAtEnd)) return;
  splits_.save_position();
  const Snapshot state(context_);
  run(before, now, Which::kDueAtEnd);
  state.restore();
  splits_.clear_others();
}

void TrainingLogs::run_between_steps(const Elapsed& before, const Elapsed& now, Which which) {
  if (!is_any_due(before, now, which)) return;
  const RandomFork fork(context_.seed, context_.device);
  const Snapshot state(context_);
  splits_.clear();
  const OrderedMap<double> scalars = report_due(before, now, which);
  splits_.clear();
  state.restore();
  observe(scalars);  // logged numbers count
}

/// Runs and reports the log ops that are due; returns their numbers.
OrderedMap<double> TrainingLogs::report_due(const Elapsed& before, const Elapsed& now,
                                            Which which) {
  if (has_failed_) return {};
  OrderedMap<Logs> results;
  // An op that failed on one of the first batches of the step was due.
  const bool is_due = log_ops_.has_failed() || log_ops_.is_any_due(before, now, which);
  if (is_due) {
    const Span span(profile_, "logging");
    results = log_ops_.run_due(before, now, which);
    shared_buffers_.skip_writes();
    // Checked before the sums over all processes, which would not fit together.
    has_failed_ = world_.max({log_ops_.has_failed() ? 1.0 : 0.0})[0] > 0;
    if (has_failed_ && !world_.is_alone()) return {};
  }
  if (!is_due && !telemetry_.is_due(before, now)) return {};
  const Span write(profile_, "write");
  show_warnings_();
  OrderedMap<Logs> logs;
  if (is_due) logs = session_.train_means().take();
  for (const auto& [name, result] : results) logs.set(name, result);
  logs.set("runtime", telemetry_.take(before, now));
  if (is_due) {
    for (const auto& [name, log] : hooks_.logs()) logs.set(name, log);
  }
  share(logs, results);
  const bool is_empty = std::ranges::all_of(logs, [](const auto& log) {
    return log.second.scalars.empty() && log.second.histograms.empty();
  });
  if (results.empty() && is_empty) return {};
  now_();  // the time of the event
  return reporter_.logged(session_.position(), logs);
}

/// Makes the logs those of all processes; `results` are those of log ops among them.
void TrainingLogs::share(OrderedMap<Logs>& logs, const OrderedMap<Logs>& results) {
  share_logs(world_, logs, [&](const std::string& op) {
    if (op == "runtime") return world_.is_root() ? 1.0 : 0.0;
    if (log_ops_.has_parts(op)) return share_of_step_;
    return results.contains(op) ? splits_[op.substr(0, op.find('/'))].share()
                                : 1.0;  // the means of train ops are already weighted
  });
}

void TrainingLogs::observe(const OrderedMap<double>& scalars) {
  if (scalars.empty()) return;
  numbers_.take(scalars, now_());
  const int64_t step = session_.position().global_step;
  hooks_.call("after_log", [&](Hook& hook) { hook.after_log(step, scalars); });
}

void TrainingLogs::observe_evaluation(const OrderedMap<double>& scalars) {
  numbers_.take(scalars, now_());
  const int64_t step = session_.position().global_step;
  hooks_.call_forked("after_log", [&](Hook& hook) { hook.after_log(step, scalars); });
}

}  // namespace stepop
