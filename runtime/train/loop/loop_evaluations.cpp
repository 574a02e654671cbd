// The checkpoints of a TrainingLoop, and the evaluations that follow them.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/loop/batch_norm.h"
#include "runtime/train/loop/training_loop.h"
#include "runtime/train/step/snapshot.h"

namespace stepop {

/// Saves a checkpoint with the names of the evaluations that follow it, unless the run already has
/// this checkpoint.
void TrainingLoop::save_checkpoint(const std::vector<std::string>& evaluations) {
  if (checkpoints_.last_step() == position_.global_step && evaluations == position_.evaluations) {
    return;
  }
  const Span span(profile_, "checkpoint");
  if (evaluations != position_.evaluations) {
    position_.evaluations = evaluations;
    position_.evaluation_folder =
        evaluations.empty() ? "" : directory_.evaluation(start_.time, position_.global_step);
  }
  // The checkpoint must hold what is evaluated. After a signal there is no time to measure.
  if (!evaluations.empty() && reason_.kind == StopReason::Kind::kNone) measure_statistics();
  write_checkpoint();
  const std::string path = directory_.checkpoints() + "/" + checkpoint_name(position_.global_step);
  hooks_.call_forked("after_checkpoint", [&](Hook& hook) { hook.after_checkpoint(path); });
}

/// Measures statistics of batch normalization for averages that evaluations use.
void TrainingLoop::measure_statistics() {
  if (context_.networks.averages_to_measure() == nullptr) return;
  splits_.begin();  // frees the graphs of the step
  measure_batch_norm(session_.iterator(), context_, position_,
                     [this] { throw_if_asked_to_stop(); });
}

void TrainingLoop::write_checkpoint() {
  read_non_finite();
  elapsed();
  splits_.save_position();
  reporter_.finish_files();  // a run that resumes from here will not write these pictures again
  checkpoints_.wait();       // for the previous checkpoint
  reporter_.mend();
  checkpoints_.save(session_.shared_checkpoint());
}

/// Runs the evaluations that the checkpoint of this step names. `was_interrupted`: an earlier start
/// stopped during them.
void TrainingLoop::run_evaluations(bool was_interrupted) {
  if (position_.evaluation_folder.empty()) return;
  const Span span(profile_, "evaluation");
  const auto begin = Telemetry::Clock::now();
  const bool was_at_end = is_at_end();
  const int64_t step = position_.global_step;
  checkpoints_.wait();  // a run that dies in an evaluation resumes after this checkpoint
  splits_.begin();      // frees the graphs of the splits
  // The checkpoint lacks what hooks did around the evaluations.
  hooks_.call_forked("before_evaluation", [&](Hook& hook) { hook.before_evaluation(step); });
  bool has_run = false;
  for (const auto& name : position_.evaluations) {
    const Evaluation* evaluation = evaluations_.find(name);
    if (evaluation == nullptr) continue;  // the config has changed
    const std::string folder =
        evaluation->settings().folder_in(directory_.root() + "/" + position_.evaluation_folder);
    const auto scalars = was_interrupted ? scalars_before(folder) : std::nullopt;
    if (scalars) {
      reporter_.evaluated_before(position_, *scalars);
      logs_.observe_evaluation(*scalars);
    } else {
      run_evaluation(*evaluation, folder);
      has_run = true;
    }
    evaluations_.look_at(name, elapsed());
  }
  end_evaluations();
  agree_after_evaluations();
  logs_.telemetry().leave_out(Telemetry::Clock::now() - begin);
  if (has_run && !was_at_end && is_at_end()) log_between_steps(elapsed());
}

/// The scalars of an evaluation that an earlier start finished, as rank 0 finds them.
std::optional<OrderedMap<double>> TrainingLoop::scalars_before(const std::string& folder) {
  const std::string text = world_.from_root([&] {
    const auto found = scalars_of_evaluation(folder);
    if (found) remove_remains(folder);
    return found ? to_json(*found) : std::string();
  });
  if (text.empty()) return std::nullopt;
  return scalars_from_json(text);
}

void TrainingLoop::run_evaluation(const Evaluation& evaluation, const std::string& folder) {
  const int64_t step = position_.global_step;
  measure_statistics();  // in case the earlier start was stopped during the measurement
  reporter_.begin_evaluation();
  const EvaluationResult result = [&] {
    // A resumed run repeats only a part of an evaluation, or nothing: tracked objects must not
    // depend on it.
    const Snapshot before(context_);
    EvaluationResult made = evaluation.run(
        position_, folder,
        [&](int64_t done, int64_t total) {
          reporter_.evaluating(evaluation.settings().op.text(), done, total);
        },
        [this] { throw_if_asked_here(); });
    before.restore();
    return made;
  }();
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(result.outputs, failed);  // none if cleaned
  disk_need_.note_evaluation(evaluation.settings().name, failed ? 0 : static_cast<int64_t>(bytes));
  failed_callbacks_ += static_cast<int>(result.failures.size());
  {
    const Span write(profile_, "write");
    reporter_.evaluated(position_, result);
  }
  logs_.observe_evaluation(result.scalars);
  // The metric may come from a callback that failed.
  if (result.failures.empty()) {
    evaluations_.note_complete(evaluation.settings().name);
    if (world_.is_root()) numbers_.check(evaluations_.open_prefixes());
  } else {
    checkpoints_.keep_unjudged(step);
  }
}

/// Ends the evaluations. A hook that asks for a stop here ends the training at once: these weights
/// were evaluated.
void TrainingLoop::end_evaluations() {
  const int64_t step = position_.global_step;
  checkpoints_.update();
  position_.evaluation_folder.clear();
  position_.evaluations.clear();
  hooks_.call_forked("after_evaluation", [&](Hook& hook) { hook.after_evaluation(step); });
  if (const std::string stop = hooks_.take_stop(); !stop.empty()) position_.stopped_by = stop;
}

/// Agrees on the time after the evaluations, and on whether a hook ends the training.
void TrainingLoop::agree_after_evaluations() {
  Agreement::View asked = own_view();
  asked.asks_stop = !position_.stopped_by.empty();
  const bool stops = agreement_.agree(asked).asks_stop;
  if (stops && position_.stopped_by.empty()) position_.stopped_by = "a hook of another process";
}

/// Waits for the evaluations of `eval_forever`, after this step's checkpoint, as `run_ahead` says.
void TrainingLoop::wait_for_other_evaluations() {
  if (settings_.run_ahead == 0 || checkpoints_.last_step() != position_.global_step ||
      is_at_end()) {
    return;
  }
  const Span span(profile_, "evaluation");
  const auto begin = Telemetry::Clock::now();
  checkpoints_.wait();
  world_.wait_for_root([this] {
    run_ahead_.wait(position_.global_step, [this] {
      const Agreement::View seen = own_view();
      return seen.signal != 0 || seen.is_over_time ||
             stop_reason().kind != StopReason::Kind::kNone ||
             (start_.takes_changes && change_.is_there(std::chrono::steady_clock::now()));
    });
  });
  agree();
  logs_.telemetry().leave_out(Telemetry::Clock::now() - begin);
}

}  // namespace stepop
