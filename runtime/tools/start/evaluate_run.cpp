#include "runtime/tools/start/evaluate_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/log/console_sink.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/start/checkpoint_choice.h"
#include "runtime/train/checkpoint/shared_state.h"
#include "runtime/train/loop/batch_norm.h"
#include "runtime/train/loop/evaluation.h"
#include "runtime/train/loop/reporter.h"
#include "runtime/train/run/evaluated_step.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// The folders in which evaluations without a training write, `eval/<time>_<name>/<step>`: the
/// folder of a killed evaluation, to continue it, or else a folder of this start.
/// `eval/<time>_<name>/process.json` shows that a process writes there.
class EvaluationFolders {
 public:
  /// The rows in a folder after which this evaluation could continue; see rows_left_behind.
  using RowsIn = std::function<std::optional<EvaluationRows>(const std::string& folder)>;
  /// Whether all evaluations in a folder are complete.
  using IsOver = std::function<bool(const std::string& folder)>;

  using TimeTaken = std::function<void(const std::string& time)>;

  /// `config` is the start's resolved config, `saved` is the config in its saved form; `time` is a
  /// time that the start has taken, or empty. `time_taken` is called when this class takes a time.
  EvaluationFolders(const RunDirectory& run, std::string config, std::string saved,
                    std::string time, TimeTaken time_taken);

  /// The folder for an evaluation of `step`. Reports the continuation of another evaluation.
  std::string take(int64_t step, const RowsIn& rows_in, const IsOver& is_over, Console& console);

  /// Marks all evaluations as complete.
  void end();

 private:
  std::optional<std::string> continued_folder(int64_t step, const RowsIn& rows_in,
                                              const IsOver& is_over, Console& console);
  bool lock(const std::string& time);

  const RunDirectory& run_;
  std::string config_;
  std::string saved_;
  std::string time_;
  TimeTaken time_taken_;
  std::map<std::string, RunLock> locks_;  ///< By the starts' times.
};

/// Turns `2026-11-21T10-00-00` into `10:00:00`.
std::string clock_of(const std::string& time) {
  std::string clock = time.substr(time.find('T') + 1);
  std::replace(clock.begin(), clock.end(), '-', ':');
  return clock;
}

/// The times of starts that evaluated without a training, newest first.
std::vector<std::string> times_of_evaluations(const RunDirectory& run) {
  std::vector<std::string> times;
  std::error_code failed;
  for (const auto& start : fs::directory_iterator(run.root() + "/eval", failed)) {
    const std::string name = start.path().filename().string();
    if (run.is_without_training(name)) times.push_back(time_in(name));
  }
  std::sort(times.rbegin(), times.rend());
  return times;
}

EvaluationFolders::EvaluationFolders(const RunDirectory& run, std::string config, std::string saved,
                                     std::string time, TimeTaken time_taken)
    : run_(run),
      config_(std::move(config)),
      saved_(std::move(saved)),
      time_(std::move(time)),
      time_taken_(std::move(time_taken)) {
  if (!time_.empty()) lock(time_);
}

/// Returns false if another process writes there.
bool EvaluationFolders::lock(const std::string& time) {
  if (locks_.contains(time)) return true;
  const std::string folder = run_.root() + "/" + run_.evaluations(time);
  make_folders(folder);
  try {
    const auto [added, is_new] = locks_.try_emplace(time, folder + "/process.json", time);
    added->second.begin();
    return is_new;
  } catch (const UsageError&) {
    return false;
  }
}

std::optional<std::string> EvaluationFolders::continued_folder(int64_t step, const RowsIn& rows_in,
                                                               const IsOver& is_over,
                                                               Console& console) {
  for (const auto& time : times_of_evaluations(run_)) {
    const std::string folder = run_.root() + "/" + run_.evaluation(time, step);
    if (!fs::is_directory(folder) || is_over(folder)) continue;
    const auto theirs = try_read_file(run_.config_file("eval", time));
    if (!theirs || without_comments(*theirs) != config_) continue;
    const auto rows = rows_in(folder);
    if (!rows || !lock(time) || is_over(folder)) continue;
    console.info(fmt::format("continuing the evaluation of {} at row {} of {}", clock_of(time),
                             with_thousands(rows->done), with_thousands(rows->total)));
    return folder;
  }
  return std::nullopt;
}

std::string EvaluationFolders::take(int64_t step, const RowsIn& rows_in, const IsOver& is_over,
                                    Console& console) {
  if (const auto folder = continued_folder(step, rows_in, is_over, console)) return *folder;
  const auto folder = [&] { return run_.root() + "/" + run_.evaluation(time_, step); };
  // A step that a training repeats is evaluated again, next to the earlier evaluation.
  if (time_.empty() || fs::exists(folder())) {
    time_ = take_time(run_, "eval", saved_);
    lock(time_);
    if (time_taken_) time_taken_(time_);
  }
  return folder();
}

void EvaluationFolders::end() {
  for (auto& [time, lock] : locks_) lock.end("done");
}

/// The evaluations of one start.
class Evaluations {
 public:
  Evaluations(Console& console, const RunDirectory& directory, Session& session,
              EvaluationStart start)
      : console_(console),
        directory_(directory),
        session_(session),
        settings_(session.settings()),
        start_(std::move(start)),
        reporter_(console, directory, settings_, /*batches_per_epoch=*/0),
        world_(session.context().world) {
    if (world_.is_root()) {
      folders_.emplace(directory, session.config_yaml(), session.config_with_defaults(),
                       start_.time, start_.time_taken);
    }
    for (const auto& each : settings_.evaluations) {
      evaluations_.emplace_back(each, session.iterator(), session.context(), start_.git);
    }
  }

  int run() {
    if (settings_.eval_all || settings_.eval_forever) {
      evaluate_each();
    } else {
      evaluate_one(start_.checkpoint ? start_.checkpoint->checkpoint.checksum : "");
    }
    reporter_.show_outputs();
    if (folders_) folders_->end();
    return failures_;
  }

 private:
  /// Rank 0 answers for all ranks.
  bool asks_root(const std::function<bool()>& question) {
    return world_.from_root([&] { return question() ? "1" : "0"; }) == "1";
  }

  std::optional<ChosenCheckpoint> next_of(std::optional<CheckpointQueue>& queue) {
    std::optional<ChosenCheckpoint> next;
    const std::string path = world_.from_root([&] {
      next = queue->next(console_);
      return next ? next->path : std::string();
    });
    if (path.empty() || world_.is_alone()) return next;
    std::optional<Checkpoint> read;
    if (next) read = next->checkpoint;
    return ChosenCheckpoint{path, *broadcast_checkpoint(world_, std::move(read))};
  }

  void evaluate_each() {
    bool was_left_out = false;
    const auto reached = [&](int64_t step) {
      if (settings_.eval_forever && world_.is_root()) write_evaluated_step(directory_, step);
    };
    const auto passed = [&](int64_t step) {
      was_left_out = true;
      reached(step);
    };
    std::optional<CheckpointQueue> queue;
    if (world_.is_root()) {
      queue.emplace(directory_, settings_.eval_filter, settings_.eval_forever, start_.deadline,
                    passed);
    }
    bool has_one = false;
    if (!settings_.eval_all && start_.checkpoint) {
      const int64_t newest = session_.position().global_step;
      has_one = asks_root([&] {
        const bool takes = queue->takes(newest).value_or(false);
        queue->pass_over(takes ? newest : newest - 1);
        return takes;
      });
      if (has_one) evaluate_one(start_.checkpoint->checkpoint.checksum);
      if (has_one) reached(newest);
    }
    while (const auto next = next_of(queue)) {
      session_.restore_for_evaluation(next->checkpoint, next->path);
      session_.initialize();
      const int64_t step = session_.position().global_step;
      console_.info(fmt::format("evaluating {} (step {})", next->path, with_thousands(step)));
      evaluate_one(next->checkpoint.checksum);
      reached(step);
      has_one = true;
    }
    if (!has_one && was_left_out && world_.is_root()) {
      console_.warn("no checkpoint was evaluated: eval_filter takes none of them");
    }
  }

  /// Runs all evaluations of the session's checkpoint, whose checksum is `checkpoint`.
  void evaluate_one(const std::string& checkpoint) {
    Position& position = session_.position();
    const auto is_over = [](const Evaluation& evaluation, const std::string& in) {
      return fs::exists(scalars_file(evaluation.settings().folder_in(in)));
    };
    // The folder of an interrupted evaluation also has the evaluations that completed before it.
    const auto rows_left_behind = [&](const std::string& other) {
      std::optional<EvaluationRows> rows;
      for (const auto& evaluation : evaluations_) {
        if (rows || is_over(evaluation, other)) continue;
        rows = evaluation.rows_left_behind(position, evaluation.settings().folder_in(other),
                                           checkpoint);
      }
      return rows;
    };
    const auto all_are_over = [&](const std::string& other) {
      return std::ranges::all_of(
          evaluations_, [&](const auto& evaluation) { return is_over(evaluation, other); });
    };
    const std::string folder = world_.from_root([&] {
      return folders_->take(position.global_step, rows_left_behind, all_are_over, console_);
    });
    for (const auto& evaluation : evaluations_) {
      const bool was_over = asks_root([&] {
        if (!is_over(evaluation, folder)) return false;
        remove_remains(evaluation.settings().folder_in(folder));
        return true;
      });
      if (was_over) continue;
      const std::string op = evaluation.settings().op.text();
      measure_batch_norm(session_.iterator(), session_.context(), position,
                         throw_if_signal_arrived);
      reporter_.begin_evaluation();
      const EvaluationResult result = evaluation.run(
          position, evaluation.settings().folder_in(folder),
          [&](int64_t done, int64_t total) { reporter_.evaluating(op, done, total); },
          throw_if_signal_arrived, checkpoint);
      reporter_.evaluated(position, result);
      if (start_.shows_numbers) show_numbers(result.scalars);
      failures_ += static_cast<int>(result.failures.size());
    }
  }

  /// The line of an evaluation, on a console of its own.
  void show_numbers(const OrderedMap<double>& scalars) {
    if (scalars.empty() || !world_.is_root()) return;
    Console console;
    ConsoleSink(console, {.trains = false})
        .write({.step = session_.position().global_step},
               {.scalars = scalars, .is_evaluation = true});
  }

  Console& console_;
  const RunDirectory& directory_;
  Session& session_;
  const Settings& settings_;
  EvaluationStart start_;
  std::deque<Evaluation> evaluations_;
  Reporter reporter_;
  World& world_;
  std::optional<EvaluationFolders> folders_;  ///< Only on rank 0.
  int failures_ = 0;
};

}  // namespace

int evaluate_run(Console& console, const RunDirectory& directory, Session& session,
                 EvaluationStart start) {
  return Evaluations(console, directory, session, std::move(start)).run();
}

}  // namespace stepop
