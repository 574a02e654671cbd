#include "runtime/loop/training_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/log/metrics_scan.h"
#include "runtime/log/number_text.h"
#include "runtime/loop/logged_metric.h"
#include "runtime/loop/non_finite_record.h"
#include "runtime/loop/random_fork.h"
#include "runtime/loop/snapshot.h"
#include "runtime/run/signals.h"

namespace stepop {
namespace {

/// The state that an unfinished step left, as far as it can be put back: without the gradients that
/// wait for their update, and with `random`, the generators' state at its beginning.
Checkpoint beginning_of_step(const Session& session, const State& random) {
  Checkpoint checkpoint = session.checkpoint();
  for (const auto& [key, tensor] : random) {
    checkpoint.tensors.insert_or_assign(std::string(kRandomState) + "." + key, tensor);
  }
  for (const auto& [name, update] : session.context().updates) {
    checkpoint.tensors.erase(name + ".spoilt");
    for (const auto& [parameter, tensor] : update->optimizer().parameters()) {
      checkpoint.tensors.erase(name + "." + parameter + ".grad");
    }
  }
  return checkpoint;
}

}  // namespace

TrainingLoop::TrainingLoop(Session& session, const RunDirectory& directory, Reporter& reporter,
                           Start start)
    : session_(session),
      settings_(session.settings()),
      context_(session.context()),
      directory_(directory),
      reporter_(reporter),
      start_(std::move(start)),
      profile_(context_.profile.get()),
      clock_(session.clock()),
      position_(session.position()),
      batches_per_epoch_(context_.splits.order("train").batches_per_epoch()),
      hooks_{&session.iterator()},
      checkpoints_(directory.checkpoints()),
      // A checkpoint that survives a power cut has its metrics beside it.
      writer_(directory.checkpoints(), [this] {
        write_.emplace(profile_, "checkpoint writer", "write a checkpoint");
        reporter_.sync();
      }) {}

TrainingLoop::~TrainingLoop() = default;

StopReason TrainingLoop::stop_reason() const {
  if (const int signal = SignalGuard::received()) {
    return {StopReason::Kind::kSignal, signal_name(signal) + " arrived", signal};
  }
  if (std::chrono::steady_clock::now() >= start_.deadline) {
    return {StopReason::Kind::kTime, "max_time is over", 0};
  }
  if (position_.global_step >= settings_.num_steps) {
    const std::string steps = with_thousands(settings_.num_steps);
    return {StopReason::Kind::kDone,
            position_.global_step > first_step_
                ? fmt::format("all {} steps are done", steps)
                : fmt::format("all {} steps were done before; a larger num_epochs or num_steps "
                              "goes on",
                              steps),
            0};
  }
  if (const auto text = session_.stop_when().reason()) return {StopReason::Kind::kMetric, *text, 0};
  return {};
}

/// Numbers that were logged, as early stopping sees them.
void TrainingLoop::observe(const OrderedMap<double>& scalars) {
  for (const auto& [name, value] : scalars) seen_scalars_.insert(name);
  session_.stop_when().observe(scalars, elapsed());
  const double* metric = scalars.find(settings_.retention.metric);
  if (metric != nullptr) metric_[position_.global_step] = *metric;
}

/// What the starts before this one logged of the metric by which checkpoints are kept.
void TrainingLoop::read_metric() {
  const std::string& name = settings_.retention.metric;
  if (name.empty()) return;
  scan_metric(directory_.metrics_file(), name,
              [&](int64_t step, double value) { metric_[step] = value; });
}

/// Of one that is safe on the disk.
void TrainingLoop::tell_of_checkpoint() {
  if (const auto path = writer_.take_written()) {
    reporter_.console().detail("checkpoint: " + *path);
  }
}

void TrainingLoop::wait_for_checkpoint() {
  const Span span(profile_, "waiting for a checkpoint's file");
  writer_.wait();
  tell_of_checkpoint();
}

/// Sets `latest` and `best`, and removes the checkpoints that are not kept.
void TrainingLoop::update_checkpoints() {
  wait_for_checkpoint();
  const Span span(profile_, "keep checkpoints");
  checkpoints_.update_links_and_sweep(metric_, settings_.retention);
}

/// Once an evaluation is over it is known whether the metrics that the config names are ever
/// logged.
void TrainingLoop::check_metrics() const {
  std::vector<std::string> to_come;
  for (const auto& op : settings_.log_ops) to_come.push_back(op.name.text());
  for (const auto& op : settings_.train_ops) to_come.push_back(op.text());
  const std::vector<std::string> known(seen_scalars_.begin(), seen_scalars_.end());
  session_.stop_when().check_observed(known, to_come);
  const std::string& best_by = settings_.retention.metric;
  if (best_by.empty() || !metric_.empty()) return;
  check_is_logged(session_.config(), "checkpoints/metric", best_by, known, to_come);
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
  const bool is_saved = std::filesystem::exists(checkpoints_.path_of(first_step_));
  saved_step_ = is_saved ? first_step_ : -1;
  position_.batches_per_epoch = batches_per_epoch_;
  clock_.global_step = position_.global_step;
  context_.networks.start_averages();
  update_watch_.emplace(context_, first_step_, settings_.num_steps);
  try {
    read_metric();
    update_checkpoints();
    reporter_.begin_training(position_, session_.config_yaml());
    try {
      loop();
    } catch (const Interrupted&) {
      reason_ = stop_reason();
      save_checkpoint_once("");  // of an evaluation's beginning there is one
    }
    wait_for_checkpoint();
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
    writer_.check();
    tell_of_checkpoint();
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
  if (saved_step_ == position_.global_step) return;
  const Span span(profile_, "checkpoint");
  read_non_finite();
  elapsed();
  position_.evaluation_folder = evaluation_folder;
  for (const auto& [name, split] : split_steps_) {
    if (name != "train") position_.batches_taken[name] = split->batches_taken();
  }
  wait_for_checkpoint();  // the one before
  const std::string path =
      writer_.save(session_.checkpoint(), [this, metric = metric_](const std::string&) {
        checkpoints_.update_links_and_sweep(metric, settings_.retention);
        write_.reset();
      });
  saved_step_ = position_.global_step;
  for_each_hook([&](Hook& hook) { hook.after_checkpoint(path); });
}

void TrainingLoop::run_evaluation(const std::string& folder) {
  const Span span(profile_, "evaluation");
  wait_for_checkpoint();  // a run that dies in an evaluation goes on in it, so its checkpoint comes
                          // first
  for (auto& [name, split] : split_steps_) split->begin();  // its graph makes room
  const std::string relative =
      folder.empty() ? directory_.evaluation(start_.time, position_.global_step) : folder;
  for_each_hook([&](Hook& hook) { hook.before_evaluation(position_.global_step); });
  reporter_.begin_evaluation();
  const EvaluationResult result = evaluate(
      settings_, session_.iterator(), context_, position_, directory_.root() + "/" + relative,
      start_.git,
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
  update_checkpoints();
  position_.evaluation_folder.clear();
  for_each_hook([&](Hook& hook) { hook.after_evaluation(position_.global_step); });
}

void TrainingLoop::finish_interrupted_evaluation() {
  if (position_.evaluation_folder.empty()) return;
  const std::string folder = directory_.root() + "/" + position_.evaluation_folder;
  if (const auto scalars = scalars_of_evaluation(folder)) {
    reporter_.evaluated_before(position_, *scalars);
    observe(*scalars);
    update_checkpoints();
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
