#include "runtime/loop/training_loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/number_text.h"
#include "runtime/loop/non_finite_record.h"
#include "runtime/step/random_fork.h"
#include "runtime/step/snapshot.h"
#include "runtime/when/logged_metric.h"

namespace stepop {
TrainingLoop::TrainingLoop(Session& session, const RunDirectory& directory, Reporter& reporter,
                           Start start)
    : session_(session),
      settings_(session.settings()),
      context_(session.context()),
      directory_(directory),
      reporter_(reporter),
      start_(std::move(start)),
      evaluation_(settings_, session.iterator(), context_, start_.git),
      profile_(context_.profile.get()),
      clock_(session.clock()),
      position_(session.position()),
      batches_per_epoch_(context_.splits.order("train").batches_per_epoch()),
      hooks_{&session.iterator()},
      // A checkpoint that survives a power cut has its metrics beside it.
      checkpoints_(directory, settings_.retention, reporter.console(), profile_,
                   [this] { reporter_.sync(); }) {}

TrainingLoop::~TrainingLoop() = default;

StopReason TrainingLoop::stop_reason() const {
  return stepop::stop_reason(session_, first_step_, start_.deadline);
}

/// Numbers that were logged, as early stopping sees them.
void TrainingLoop::observe(const OrderedMap<double>& scalars) {
  for (const auto& [name, value] : scalars) seen_scalars_.insert(name);
  session_.stop_when().observe(scalars, elapsed());
  checkpoints_.observe(position_.global_step, scalars);
}

/// Once an evaluation is over it is known whether the metrics that the config names are ever
/// logged.
void TrainingLoop::check_metrics() const {
  std::vector<std::string> to_come;
  for (const auto& op : settings_.log_ops) to_come.push_back(op.name.text());
  for (const auto& op : settings_.train_ops) to_come.push_back(op.text());
  const std::vector<std::string> known(seen_scalars_.begin(), seen_scalars_.end());
  session_.stop_when().check_observed(known, to_come);
  if (checkpoints_.knows_metric()) return;
  check_is_logged(session_.config(), "checkpoints/metric", settings_.retention.metric, known,
                  to_come);
}

void TrainingLoop::throw_if_asked_to_stop() const {
  // Between the batches of one step there is no state that could be saved.
  if (clock_.micro_batch > 0) return;
  const StopReason reason = stop_reason();
  if (reason.kind == StopReason::Kind::kSignal || reason.kind == StopReason::Kind::kTime) {
    throw Interrupted(reason.text);
  }
}

StopReason TrainingLoop::run() {
  seconds_before_ = position_.seconds;
  begin_ = std::chrono::steady_clock::now();
  first_step_ = position_.global_step;
  position_.batches_per_epoch = batches_per_epoch_;
  clock_.global_step = position_.global_step;
  context_.networks.start_averages();
  update_watch_.emplace(context_, first_step_, settings_.num_steps);
  try {
    checkpoints_.begin(first_step_);
    reporter_.begin_training(position_, session_.config_yaml());
    try {
      loop();
    } catch (const Interrupted&) {
      reason_ = stop_reason();
      save_checkpoint_once("");  // of an evaluation's beginning there is one
    }
    checkpoints_.wait();
  } catch (const NonFinite& error) {
    const RecordedNonFinite told(record_non_finite(error, directory_,
                                                   context_.splits.order("train"),
                                                   beginning_of_step(session_, random_before_step_),
                                                   clock_.micro_batch, settings_.accumulate));
    fail(told);
    throw told;
  } catch (const std::exception& error) {
    fail(error);
    throw;
  }
  return reason_;
}

void TrainingLoop::fail(const std::exception& error) {
  reporter_.console().end_progress();
  for_each_hook([&](Hook& hook) { hook.at_exception(error); });
}

void TrainingLoop::loop() {
  last_ = elapsed();
  finish_interrupted_evaluation();
  if (position_.global_step == 0) {
    run_logs_at_start();
    const bool is_due = settings_.checkpoint_zero || settings_.checkpoint.at_start();
    if (is_due) save_checkpoint_once("");
    if (settings_.evaluates && settings_.evaluation.at_start()) run_evaluation("");
  }
  last_of_evaluation_ = elapsed();
  while ((reason_ = stop_reason()).kind == StopReason::Kind::kNone) {
    if (position_.batch == 0) {
      for_each_hook([&](Hook& hook) { hook.before_epoch(position_.epoch); });
    }
    for_each_hook([&](Hook& hook) { hook.before_step(position_.global_step); });
    train_step();
    for (const auto& text : update_watch_->after_step(position_.global_step)) {
      reporter_.console().warn(text);
    }
    const Elapsed now = elapsed();
    run_due_logs(now);
    for_each_hook([&](Hook& hook) { hook.after_step(position_.global_step); });
    reporter_.step_done(position_);
    checkpoints_.check();
    finish_step(now);
    last_ = now;
    if (profile_ != nullptr) profile_->step_done();
  }
  save_checkpoint_once("");
}

void TrainingLoop::train_step() {
  SplitStep& train = split_step("train");
  for (auto& [name, split] : split_steps_) split->begin();
  if (context_.on_nan == OnNan::kStop) random_before_step_ = context_.tracker.save(kRandomState);
  clock_.global_step = position_.global_step;
  clock_.micro_batches = std::min(settings_.accumulate, batches_per_epoch_ - position_.batch);
  for (clock_.micro_batch = 0; clock_.micro_batch < clock_.micro_batches; ++clock_.micro_batch) {
    train.begin();
    for (const auto& name : settings_.train_ops) {
      session_.train_means().add(name.text(), train.train(name.op));
    }
    ++position_.batch;
    position_.samples_seen += train.batch_size();
  }
  clock_.micro_batch = 0;
  context_.networks.update_averages(position_.global_step);
  ++position_.global_step;
}

/// Before what is logged or saved could be of a training that went wrong.
void TrainingLoop::read_non_finite() {
  for (const auto& [name, update] : context_.updates) {
    const std::string warning = update->read_non_finite();
    if (!warning.empty()) reporter_.console().warn(warning);
  }
}

bool TrainingLoop::is_log_due(const Trigger& when, const Elapsed& now) const {
  if (now.step == 0) return when.at_start();
  const bool is_last = now.step >= settings_.num_steps;
  return when.is_due(last_, now) || (is_last && when.at_end());
}

void TrainingLoop::run_logs_at_start() {
  // The batch that is logged is also that of the first step, which must not see a trace of it:
  // neither of random numbers that step_op drew nor of running means nor of an iterator's counts.
  const RandomFork fork(context_.seed, context_.device);
  const Snapshot before(context_);
  run_due_logs(last_);
  split_steps_.clear();
  const State observed = session_.stop_when().save();  // what was logged counts
  before.restore();
  session_.stop_when().load(observed);
}

void TrainingLoop::run_due_logs(const Elapsed& now) {
  OrderedMap<Logs> logs;
  std::optional<Span> span;
  for (const auto& op : settings_.log_ops) {
    if (!is_log_due(op.when, now)) continue;
    if (!span) span.emplace(profile_, "logging");
    const Logs& result = split_step(op.name.split).log(op.name.op);
    if (logs.empty()) logs = session_.train_means().take();
    logs.set(op.name.text(), result);
  }
  if (logs.empty()) return;
  const Span write(profile_, "write");
  read_non_finite();
  elapsed();  // the time of the event
  observe(reporter_.logged(position_, logs));
}

void TrainingLoop::finish_step(const Elapsed& now) {
  // The weights that a training ends with are evaluated, wherever in an epoch it ends.
  const bool is_last = now.step >= settings_.num_steps;
  const bool evaluation_is_due =
      settings_.evaluates && (is_last || settings_.evaluation.is_due(last_of_evaluation_, now));
  const bool is_epoch_end = position_.batch >= batches_per_epoch_;
  if (is_epoch_end) {
    position_.batch = 0;
    ++position_.epoch;
    for_each_hook([&](Hook& hook) { hook.after_epoch(position_.epoch - 1); });
  }
  if (is_epoch_end || evaluation_is_due || settings_.checkpoint.is_due(last_, now)) {
    save_checkpoint_once(
        evaluation_is_due ? directory_.evaluation(start_.time, position_.global_step) : "");
  }
  last_of_evaluation_ = now;
  if (!evaluation_is_due) return;
  run_evaluation(position_.evaluation_folder);
  last_of_evaluation_ = elapsed();
}

void TrainingLoop::save_checkpoint_once(const std::string& evaluation_folder) {
  if (checkpoints_.last_step() == position_.global_step) return;
  const Span span(profile_, "checkpoint");
  read_non_finite();
  elapsed();
  position_.evaluation_folder = evaluation_folder;
  for (const auto& [name, split] : split_steps_) {
    if (name != "train") position_.batches_taken[name] = split->batches_taken();
  }
  checkpoints_.wait();  // for the one before
  const std::string path = checkpoints_.save(session_.checkpoint());
  for_each_hook([&](Hook& hook) { hook.after_checkpoint(path); });
}

void TrainingLoop::run_evaluation(const std::string& folder) {
  const Span span(profile_, "evaluation");
  checkpoints_.wait();  // a run that dies in an evaluation goes on in it, after its checkpoint
  for (auto& [name, split] : split_steps_) split->begin();  // its graph makes room
  const std::string relative =
      folder.empty() ? directory_.evaluation(start_.time, position_.global_step) : folder;
  for_each_hook([&](Hook& hook) { hook.before_evaluation(position_.global_step); });
  reporter_.begin_evaluation();
  const EvaluationResult result = evaluation_.run(
      position_, directory_.root() + "/" + relative,
      [&](int64_t done, int64_t total) {
        reporter_.evaluating(settings_.eval_op.text(), done, total);
      },
      [this] { throw_if_asked_to_stop(); });
  failed_callbacks_ += static_cast<int>(result.failures.size());
  {
    const Span write(profile_, "write");
    reporter_.evaluated(position_, result);
  }
  observe(result.scalars);
  // A callback that failed may be the one that gives it.
  if (result.failures.empty()) check_metrics();
  checkpoints_.update();
  position_.evaluation_folder.clear();
  for_each_hook([&](Hook& hook) { hook.after_evaluation(position_.global_step); });
}

void TrainingLoop::finish_interrupted_evaluation() {
  if (position_.evaluation_folder.empty()) return;
  const std::string folder = directory_.root() + "/" + position_.evaluation_folder;
  if (const auto scalars = scalars_of_evaluation(folder)) {
    reporter_.evaluated_before(position_, *scalars);
    observe(*scalars);
    checkpoints_.update();
    position_.evaluation_folder.clear();
    return;
  }
  run_evaluation(position_.evaluation_folder);
}

SplitStep& TrainingLoop::split_step(const std::string& split) {
  auto& step = split_steps_[split];
  if (!step) {
    LoaderOptions options = context_.splits.loader_options();
    if (split == "train") {
      options.first_batch = position_.epoch * batches_per_epoch_ + position_.batch;
      options.interrupt = [this] { throw_if_asked_to_stop(); };
      options.profile = context_.profile;
    } else {
      // Nothing of another split is fetched before one of its ops is due.
      options.workers = 0;
      options.first_batch = position_.batches_taken[split];
    }
    step = std::make_unique<SplitStep>(split, session_.iterator(), context_, position_, options);
  }
  return *step;
}

Elapsed TrainingLoop::elapsed() {
  const auto passed = std::chrono::steady_clock::now() - begin_;
  position_.seconds = seconds_before_ + std::chrono::duration<double>(passed).count();
  return {position_.global_step, position_.seconds / 60};
}

}  // namespace stepop
