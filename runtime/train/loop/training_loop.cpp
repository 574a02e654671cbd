#include "runtime/train/loop/training_loop.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/measure/processor_time.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/run/signals.h"

namespace stepop {

TrainingLoop::TrainingLoop(Session& session, const RunDirectory& directory, Reporter& reporter,
                           Start start)
    : session_(session),
      settings_(session.settings()),
      context_(session.context()),
      directory_(directory),
      reporter_(reporter),
      start_(std::move(start)),
      evaluations_(settings_, session.iterator(), context_, start_.git),
      profile_(context_.profile.get()),
      clock_(session.clock()),
      position_(session.position()),
      batches_per_epoch_(context_.splits.order("train").batches_per_epoch()),
      hooks_(context_, position_),
      splits_(session.iterator(), context_, position_, [this] { throw_if_asked_to_stop(); }),
      checkpoints_(
          directory, settings_, reporter.console(), profile_,
          [this, names = session.finite_names()](const Checkpoint& checkpoint) {
            check_weights(checkpoint.tensors, names, checkpoint.progress.global_step);
            // A checkpoint that survives a power cut has its metrics beside it.
            reporter_.sync();
          },
          /*writes=*/context_.world.is_root()),
      numbers_(session, checkpoints_, reporter.console()),
      data_wait_(context_.splits.loader_options().workers),
      disk_need_(settings_),
      non_finite_(session, directory),
      change_(directory),
      world_(context_.world),
      agreement_(world_),
      shared_buffers_(world_, context_.networks),
      logs_(
          {session, splits_, hooks_, shared_buffers_, numbers_, reporter},
          [this] { return elapsed(); }, [this] { show_warnings(); }),
      finite_statistics_(context_.networks),
      run_ahead_(directory, reporter.console(), settings_.run_ahead) {
  if (own_key<bool>(context_.config, "cuda_graph")) {
    captured_step_ = std::make_unique<CapturedStep>(context_);
  }
  hooks_.add("iterator", session.iterator());
  for (const NamedHook& named : session.hooks()) {
    hooks_.add(named.name, *named.hook, /*is_of_config=*/true, named.when);
  }
}

StopReason TrainingLoop::run() {
  seconds_before_ = position_.seconds;
  begin_ = std::chrono::steady_clock::now();
  first_step_ = position_.global_step;
  was_stopped_ = !position_.stopped_by.empty();
  position_.batches_per_epoch = batches_per_epoch_;
  clock_.global_step = position_.global_step;
  context_.networks.start_averages();
  update_watch_.emplace(context_, first_step_ + settings_.steps_until_all_trained(first_step_) - 1,
                        settings_.num_steps);
  try {
    const auto has_checkpoint =
        world_.from_root([&] { return checkpoints_.begin(first_step_) ? "1" : "0"; });
    if (!world_.is_root() && has_checkpoint == "1") checkpoints_.note(first_step_);
    reporter_.begin_training(position_, session_.config_yaml(), session_.graph(), profile_);
    try {
      hooks_.call("before_training", [](Hook& hook) { hook.before_training(); });
      try {
        loop();
      } catch (const std::exception& error) {
        if (!splits_after(error)) throw;
      }
      if (rewind_) reason_ = {StopReason::Kind::kRewind, rewind_->reason, 0};
    } catch (const Interrupted&) {
      is_whole_ = false;
      agree();
      reason_ = stop_reason();
      save_checkpoint(position_.evaluations);
    }
    warn_of_data();
    reporter_.finish_files();
    checkpoints_.wait();
    session_.set_end(end_of(reason_.kind));
    if (!rewind_) hooks_.call("after_training", [](Hook& hook) { hook.after_training(); });
  } catch (...) {
    fail();
  }
  return reason_;
}

void TrainingLoop::loop() {
  begin();
  ProcessorWatch processor(at::get_num_threads());
  data_wait_ = DataWait(context_.splits.loader_options().workers);  // evaluations took their time
  while ((reason_ = stop_reason()).kind == StopReason::Kind::kNone) {
    if (config_changes()) {
      reason_ = {StopReason::Kind::kChange, "the config changes", 0};
      break;
    }
    train_step();
    const Elapsed now = elapsed();
    run_logs(now);
    hooks_.call_in_step("after_step", [&](Hook& hook) { hook.after_step(position_.global_step); });
    take_requests(now);
    take_rewind();
    if (rewind_) return;
    reporter_.step_done(position_);
    for (const std::string& text : {processor.look(), data_wait_.look()}) {
      if (!text.empty()) reporter_.console().warn(text);
    }
    checkpoints_.check();
    warn_of_disk();
    finish_step(now);
    last_ = now;
    if (profile_ != nullptr) profile_->step_done();
  }
  save_checkpoint({});
}

/// Everything before the first step of this start.
void TrainingLoop::begin() {
  agree();
  last_ = elapsed();
  // The checkpoint of this start lacks what hooks did after it was saved.
  if (checkpoints_.last_step() == first_step_) {
    const std::string path = directory_.checkpoints() + "/" + checkpoint_name(first_step_);
    hooks_.call_forked("after_checkpoint", [&](Hook& hook) { hook.after_checkpoint(path); });
  }
  const bool was_evaluating = !position_.evaluation_folder.empty();
  run_evaluations(/*was_interrupted=*/true);
  if (position_.global_step == 0 && !was_evaluating) {
    log_between_steps(last_);
    const std::vector<std::string> evaluations = evaluations_.due_at_start();
    if (!evaluations.empty() || settings_.checkpoint_zero || settings_.checkpoint.at_start()) {
      save_checkpoint(evaluations);
    }
    run_evaluations();
  }
  evaluations_.look_at(elapsed());
}

/// Runs the logs of a step. Their numbers may end the training, so that further logs become due.
void TrainingLoop::run_logs(const Elapsed& now) {
  logs_.run(last_, now);
  if (is_at_end()) logs_.run_at_end(last_, now);
}

/// Takes the hooks' requests since the last step. A log may cause further requests.
void TrainingLoop::take_requests(const Elapsed& now) {
  position_.stopped_by.clear();
  Agreement::View asked = own_view();
  asked.has_change = !world_.is_alone() && world_.is_root() && start_.takes_changes &&
                     change_.is_there(std::chrono::steady_clock::now());
  asked.asks_log = hooks_.take_log();
  add_requests(asked);
  asked = agree(asked);
  if (asked.asks_log) {
    logs_.run(last_, now, LogOps::Which::kAll);
    add_requests(asked);
    asked = agree(asked);
  }
  asked_for_checkpoint_ = asked.asks_checkpoint;
  asked_for_evaluation_ = asked.asks_evaluation;
  if (asked.asks_stop && position_.stopped_by.empty()) {
    position_.stopped_by = "a hook of another process";
  }
  if (!position_.stopped_by.empty()) run_logs(now);
}

/// A hook may ask to go back; without a checkpoint there is nothing to go back to.
void TrainingLoop::take_rewind() {
  const std::string reason = hooks_.take_rewind();
  if (reason.empty() || !world_.is_alone()) return;
  if (checkpoints_.last_step() < 0) {
    return reporter_.console().warn(reason + "; there is no checkpoint yet to go back to");
  }
  if (is_at_end()) {
    return reporter_.console().warn(reason + "; no batch is left to continue with");
  }
  splits_.save_position();
  Progress position = position_;
  if (position.batch >= batches_per_epoch_) {
    position.batch = 0;
    ++position.epoch;
  }
  ++position.rewinds;
  rewind_ = Rewind{.reason = reason, .position = std::move(position), .leaves_out = true};
}

/// Adds the requests of this process's hooks, except for a log.
void TrainingLoop::add_requests(Agreement::View& asked) {
  asked.asks_checkpoint |= hooks_.take_checkpoint();
  asked.asks_evaluation |= hooks_.take_evaluation();
  const std::string stop = hooks_.take_stop();
  if (position_.stopped_by.empty()) position_.stopped_by = stop;
  asked.asks_stop |= !stop.empty();
}

/// The view of this process at this moment.
Agreement::View TrainingLoop::own_view() const {
  const auto now = std::chrono::steady_clock::now();
  return {.seconds = seconds_before_ + std::chrono::duration<double>(now - begin_).count(),
          .signal = SignalGuard::received(),
          .is_over_time = now >= start_.deadline};
}

/// The common view of all processes, from the last step.
Agreement::View TrainingLoop::view() const {
  return world_.is_alone() ? own_view() : agreement_.last();
}

/// A single process has nothing to agree on.
Agreement::View TrainingLoop::agree(const Agreement::View& own) {
  if (world_.is_alone()) return agreement_.agree(own);
  const Span span(profile_, "waiting for the other processes");
  return agreement_.agree(own);
}

/// Agrees outside of a step.
void TrainingLoop::agree() { agree(own_view()); }

bool TrainingLoop::config_changes() {
  if (!world_.is_alone()) return agreement_.last().has_change;
  return start_.takes_changes && change_.is_there(std::chrono::steady_clock::now());
}

/// Ends an epoch, saves a checkpoint and runs evaluations, if they are due after a step.
void TrainingLoop::finish_step(const Elapsed& now) {
  // The final weights are evaluated, wherever in an epoch the training ends.
  const std::vector<std::string> evaluations =
      evaluations_.due(now, /*all=*/is_at_end() || asked_for_evaluation_);
  const bool is_epoch_end = position_.batch >= batches_per_epoch_;
  if (is_epoch_end) {
    position_.batch = 0;
    ++position_.epoch;
    hooks_.call("after_epoch", [&](Hook& hook) { hook.after_epoch(position_.epoch - 1); });
  }
  if (is_epoch_end || !evaluations.empty() || asked_for_checkpoint_ ||
      settings_.checkpoint.is_due(last_, now) || logs_.has_failed()) {
    save_checkpoint(evaluations);
  }
  if (logs_.has_failed()) {
    checkpoints_.wait();
    saved_ = saved_text(position_.global_step);
    end_by_failed_log();
  }
  evaluations_.look_at(now);
  run_evaluations();
  wait_for_other_evaluations();
}

/// All reasons for which a training stops.
StopReason TrainingLoop::stop_reason() const {
  using Kind = StopReason::Kind;
  const Agreement::View seen = view();
  if (const int signal = seen.signal) {
    return {Kind::kSignal, signal_name(signal) + " arrived", signal};
  }
  if (seen.is_over_time) {
    return {Kind::kTime, "max_time is over", 0};
  }
  if (!is_at_end()) {
    if (position_.global_step < settings_.stop_at) return {};
    return {Kind::kStep, fmt::format("stop_at: {}", with_thousands(settings_.stop_at)), 0};
  }
  if (position_.global_step < settings_.num_steps) {
    if (session_.stop_when().is_over()) {
      return {Kind::kMetric, *session_.stop_when().reason(), 0};
    }
    return {
        Kind::kHook,
        position_.stopped_by +
            (was_stopped_ ? "; it ended this way before: change the config to continue it" : ""),
        0};
  }
  const std::string steps = with_thousands(settings_.num_steps);
  if (position_.global_step > first_step_) {
    return {Kind::kDone, fmt::format("all {} steps are done", steps), 0};
  }
  return {
      Kind::kDone,
      fmt::format("all {} steps were done before: set a larger num_epochs or num_steps to continue",
                  steps),
      0};
}

/// Whether the training has reached its own end, after which only logs and an evaluation follow. A
/// training that stops by a signal or `max_time` is to be resumed instead.
bool TrainingLoop::is_at_end() const {
  return position_.global_step >= settings_.num_steps || session_.stop_when().is_over() ||
         !position_.stopped_by.empty();
}

void TrainingLoop::throw_if_asked_to_stop() const {
  // Between the batches of one step there is no state that could be saved.
  if (clock_.micro_batch > 0) return;
  const StopReason reason = stop_reason();
  if (reason.kind == StopReason::Kind::kSignal || reason.kind == StopReason::Kind::kTime) {
    throw Interrupted(reason.text);
  }
}

/// Throws within an evaluation, whose processes agree by themselves on whether it ends.
void TrainingLoop::throw_if_asked_here() const {
  const Agreement::View seen = own_view();
  if (seen.signal != 0) {
    throw Interrupted(signal_name(seen.signal) + " arrived", 128 + seen.signal);
  }
  if (seen.is_over_time && world_.is_root()) throw Interrupted("max_time is over");
}

/// Logs outside of a step.
void TrainingLoop::log_between_steps(const Elapsed& now) {
  logs_.run_between_steps(last_, now, is_at_end() ? LogOps::Which::kDueAtEnd : LogOps::Which::kDue);
  if (logs_.has_failed()) end_by_failed_log();
}

/// Throws the exception of a log op; other processes learn of it by `agree`.
void TrainingLoop::end_by_failed_log() {
  logs_.rethrow_failure();
  agree();
}

/// What is to be known before numbers are logged.
void TrainingLoop::show_warnings() {
  warn_of_data();
  read_non_finite();
}

/// Warns of records that streams left out.
void TrainingLoop::warn_of_data() {
  for (const auto& text : context_.splits.take_warnings()) reporter_.console().warn(text);
}

/// Warns of a disk that is small for what is still to be written, once the sizes are known.
void TrainingLoop::warn_of_disk() {
  disk_need_.note_checkpoint(checkpoints_.written_bytes());
  if (!disk_need_.is_ready() || !world_.is_root()) return;
  const std::string text = disk_need_.look(position_.global_step, free_bytes_at(directory_.root()));
  if (!text.empty()) reporter_.console().warn(text);
}

int64_t TrainingLoop::skipped_updates() const {
  int64_t count = 0;
  for (const auto& [name, update] : context_.updates) count += update->skipped();
  return count;
}

Elapsed TrainingLoop::elapsed() {
  position_.seconds = own_view().seconds;
  return {position_.global_step, view().seconds / 60};
}

}  // namespace stepop
