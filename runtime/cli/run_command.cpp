#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/cli/checkpoint_queue.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/run_profile.h"
#include "runtime/cli/run_source.h"
#include "runtime/config/difference.h"
#include "runtime/config/resolve.h"
#include "runtime/config/yaml_reader.h"
#include "runtime/config/yaml_writer.h"
#include "runtime/error_text.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/folders.h"
#include "runtime/log/number_text.h"
#include "runtime/loop/evaluation.h"
#include "runtime/loop/reporter.h"
#include "runtime/loop/session.h"
#include "runtime/loop/training_loop.h"
#include "runtime/loop/trial.h"
#include "runtime/optim/non_finite.h"
#include "runtime/run/device.h"
#include "runtime/run/run_directory.h"
#include "runtime/run/run_lock.h"
#include "runtime/run/signals.h"
#include "runtime/run/start_record.h"
#include "runtime/run/supersede.h"
#include "runtime/shell_text.h"
#include "runtime/tensor_memory.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

class Run {
 public:
  explicit Run(const Arguments& arguments) : arguments_(arguments), console_(arguments.log_level) {}

  int run() {
    const SignalGuard signals;
    const RunSource source = find_source(arguments_);
    check_arguments(source);
    const bool goes_on = source.project && !arguments_.retrain && !arguments_.debug;
    // From here on nobody else adds to the run, not even while this start finds its checkpoint.
    if (goes_on && arguments_.train && !arguments_.check) lock(*source.project);
    if (goes_on && !arguments_.train) take_free_time(*source.project);
    const auto checkpoint = find_checkpoint(source);
    if (!arguments_.train && !checkpoint) {
      throw UsageError(
          source.project
              ? fmt::format("{}: the run has no checkpoint to evaluate yet", source.project->root())
              : "nothing to evaluate: give a run with -p or a checkpoint with -c; "
                "-t trains");
    }
    if (arguments_.retrain && !checkpoint) {
      throw UsageError(
          source.project
              ? fmt::format("-r: {}: the run has no checkpoint to take weights from yet",
                            source.project->root())
              : "-r takes the weights of a run: name it with -p, or a checkpoint with -c");
    }
    const Config config = read_run_config(arguments_, source);
    const std::string name = run_name(arguments_, source.project, config);

    std::optional<TensorMemory> memory;
    if (arguments_.check) memory.emplace();
    Session session(config, arguments_.train, arguments_.debug, arguments_.allow_unknown);
    check_evaluation(session.settings(), source);
    if (!arguments_.train && !session.settings().evaluates) {
      throw UsageError("nothing to evaluate: the config has no datasets/validation");
    }
    if (checkpoint) restore(session, *checkpoint);
    if (!checkpoint) weights_ = session.init_weights();
    // Another run's evaluation is not this one's to finish.
    if (!goes_on) session.position().evaluation_folder.clear();
    session.check();
    throw_if_signal_arrived();
    if (arguments_.check) return check(session, checkpoint, *memory);
    console_.info(session.config_yaml());
    if (!session.warnings().empty()) console_.warn(session.warnings());

    const std::string config_name =
        fmt::format("{}_{}.yaml", arguments_.train ? "train" : "eval", time_);
    const RunDirectory directory =
        goes_on ? *source.project
                : RunDirectory::create(arguments_.debug ? "logs/debug_runs" : "logs", time_, name,
                                       config_name, session.config_yaml());
    if (arguments_.train && !lock_) lock(directory);
    try {
      if (lock_) lock_->begin();
      if (goes_on && !checkpoint && arguments_.train) compare_with_last_config(directory, session);
      if (goes_on) {
        write_file_atomically(directory.configs() + "/" + config_name, session.config_yaml());
      }
      begin(directory, session, goes_on, checkpoint);
      return arguments_.train ? train(directory, session)
                              : evaluate_only(directory, session, source);
    } catch (const std::exception& error) {
      console_.end_progress();
      const std::string text = error_text(error) + what_next(error, directory);
      record_error(text);
      const auto* ours = dynamic_cast<const Error*>(&error);
      throw Error(text, ours != nullptr ? ours->exit_code() : 1);
    }
  }

 private:
  /// For the log; main() prints it. A log that cannot be written is not to hide what happened.
  void record_error(const std::string& text) {
    try {
      console_.record("error: " + text);
    } catch (const Error&) {
    }
  }

  /// For an error that ended a training: how to go on.
  std::string what_next(const std::exception& error, const RunDirectory& directory) const {
    if (!arguments_.train || dynamic_cast<const NonFinite*>(&error) != nullptr) return "";
    return "\nwhat was saved is whole; once the cause is mended, go on with:  " +
           resume_command(directory.root());
  }

  void check_arguments(const RunSource& source) const {
    if (source.base.empty()) {
      throw UsageError("no config given: -b base.yaml, or -p with the folder of a run");
    }
    if (arguments_.retrain && !arguments_.train) {
      throw UsageError("-r takes the weights of a run to train on with them: it needs -t");
    }
    if (arguments_.profile && (!arguments_.train || arguments_.check)) {
      throw UsageError(
          arguments_.check
              ? "--check ends before a training that --profile could measure: give one of them"
              : "--profile tells where the time of a training goes: it needs -t");
    }
  }

  /// An evaluation gets a folder of its own, also in the second in which another began.
  void take_free_time(const RunDirectory& directory) {
    while (fs::exists(
        fs::path(directory.root() + "/" + directory.evaluation(time_, 0)).parent_path())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      time_ = time_name();
    }
  }

  int check(Session& session, const std::optional<std::string>& checkpoint, TensorMemory& memory) {
    if (!session.warnings().empty()) console_.warn(session.warnings());
    if (checkpoint) console_.info("weights   " + *checkpoint);
    if (!weights_.empty()) console_.info("init_from " + weights_);
    try_everything(session, memory, console_);
    return 0;
  }

  void check_evaluation(const Settings& settings, const RunSource& source) const {
    if (arguments_.train || !(settings.eval_all || settings.eval_forever)) return;
    const char* key = settings.eval_all ? "eval_all" : "eval_forever";
    if (!source.project) {
      throw UsageError(fmt::format("{} takes the checkpoints of a run: name it with -p", key));
    }
    if (arguments_.checkpoint) {
      throw UsageError(fmt::format("{} and -c: -c is for one checkpoint", key));
    }
  }

  /// The checkpoint that `-c` picks, else the newest one of `-p` that is not damaged; none for a
  /// fresh run.
  std::optional<std::string> find_checkpoint(const RunSource& source) {
    if (!arguments_.checkpoint) {
      if (!source.project) return std::nullopt;
      std::vector<std::string> warnings;
      auto path = CheckpointFolder(source.project->checkpoints()).newest_whole(warnings);
      for (const auto& warning : warnings) console_.warn(warning);
      return path;
    }
    const std::string& wanted = *arguments_.checkpoint;
    if (source.project) {
      auto path = CheckpointFolder(source.project->checkpoints()).find(wanted);
      const auto damage = path ? verify_checkpoint(*path) : std::nullopt;
      if (damage) {
        throw Error(
            fmt::format("-c {}: {}: damaged: {}; without -c the newest one that is whole is taken",
                        wanted, *path, *damage));
      }
      if (path) return path;
    }
    if (fs::exists(wanted)) return wanted;
    throw UsageError(fmt::format(
        "-c: {}: no such file{}", wanted,
        source.project
            ? ", nor a checkpoint of the run: those are named by their step, latest, best"
            : ""));
  }

  void lock(const RunDirectory& directory) {
    make_folders(fs::path(directory.process_file()).parent_path().string());
    for (const auto& path : {directory.process_file(), directory.log_file()}) {
      std::error_code failed;
      const auto time = fs::last_write_time(path, failed);
      if (!failed && (!run_ended_ || time > *run_ended_)) run_ended_ = time;
    }
    lock_.emplace(directory.process_file(), time_);
  }

  void restore(Session& session, const std::string& path) {
    const Checkpoint checkpoint = load_checkpoint(path);
    if (arguments_.train && !arguments_.retrain) {
      session.resume(checkpoint, path);
      changes_ = differences_to(checkpoint.config, session);
      return;
    }
    if (arguments_.train) return session.restore_weights(checkpoint, path);
    session.restore_for_evaluation(checkpoint, path);
  }

  static std::string differences_to(const std::string& yaml, const Session& session) {
    return describe(
        differences(parse_yaml(yaml, {"", 0}), parse_yaml(session.config_yaml(), {"", 0})));
  }

  /// Without a checkpoint the last start tells what changed.
  void compare_with_last_config(const RunDirectory& directory, const Session& session) {
    const Value last = resolve_config({directory.last_config()}, {});
    changes_ = differences_to(to_yaml(escape_references(last)), session);
  }

  /// Says what begins, and where everything is.
  void begin(const RunDirectory& directory, Session& session, bool goes_on,
             const std::optional<std::string>& checkpoint) {
    git_ = git_state();
    make_folders(directory.checkpoints());  // beside the log, and missing when someone removed it
    console_.open_log_file(directory.log_file());
    console_.info(fmt::format("command   {}", arguments_.command_line));
    console_.info(fmt::format("run       {}", directory.root()));
    console_.info(fmt::format("device    {}", describe_device(session.context().device)));
    console_.info(fmt::format("seed      {}", session.context().seed));
    console_.info(fmt::format("git       {}", git_));
    console_.info(fmt::format("process   {} on {}", getpid(), host_name()));
    for (const auto& text : session.context().networks.descriptions()) {
      console_.info(fmt::format("network   {}", text));
    }
    if (!weights_.empty()) console_.info(fmt::format("init_from {}", weights_));
    if (goes_on && arguments_.name) {
      console_.warn(fmt::format("-n {}: not used, the run keeps its name", *arguments_.name));
    }
    if (arguments_.train && goes_on) return resume(directory, session, checkpoint);
    if (!checkpoint) return;
    if (arguments_.retrain) return console_.info("weights from " + *checkpoint);
    if (session.settings().eval_all) return;  // each is told
    console_.info(fmt::format(
        "{} {} (step {})", arguments_.train ? "going on, in a run of its own, from" : "evaluating",
        *checkpoint, with_thousands(session.position().global_step)));
  }

  /// Says where the training goes on, and makes room for it.
  void resume(const RunDirectory& directory, Session& session,
              const std::optional<std::string>& checkpoint) {
    const Position& position = session.position();
    if (lock_->before().state == "running") {
      console_.info(fmt::format("the last training of this run, process {} on {}, was killed",
                                lock_->before().pid, lock_->before().host));
    }
    if (checkpoint) {
      console_.info(resume_text(directory, session, *checkpoint));
    } else {
      console_.info(fmt::format("no checkpoint was written yet: starting again at step 0, seed {}",
                                session.context().seed));
    }
    if (!changes_.empty()) {
      console_.info(fmt::format("the config differs from {}'s:\n{}",
                                checkpoint ? "the checkpoint" : "the last start", changes_));
    }
    sweep_temporaries(directory.root());
    const Superseded moved =
        supersede(directory, checkpoint ? position.global_step : int64_t{-1}, time_);
    if (!moved.mended.empty()) console_.info(moved.mended);
    if (moved.folder.empty()) return;
    console_.info(fmt::format("what came after step {} moved to {}",
                              with_thousands(position.global_step), moved.folder));
  }

  std::string resume_text(const RunDirectory& directory, Session& session,
                          const std::string& checkpoint) {
    const Position& position = session.position();
    const BatchOrder& order = session.context().splits.order("train");
    const std::string epoch = short_number(static_cast<double>(position.epoch) +
                                           static_cast<double>(position.batch) /
                                               static_cast<double>(order.batches_per_epoch()));
    std::string text = fmt::format(
        "resuming at step {} of {} (epoch {}, position {} of its order) "
        "from {}",
        with_thousands(position.global_step), with_thousands(session.settings().num_steps), epoch,
        with_thousands(order.examples_in(position.batch)),
        fs::path(checkpoint).lexically_proximate(directory.root()).string());
    if (run_ended_) {
      const auto written = fs::last_write_time(checkpoint);
      const std::chrono::duration<double> before_end = *run_ended_ - written;
      // A checkpoint can be the last thing that a run wrote.
      text += fmt::format(", written {} before the run ended",
                          span_text(std::max(before_end.count(), 0.0)));
    }
    return text;
  }

  int train(const RunDirectory& directory, Session& session) {
    const int64_t batches = session.context().splits.order("train").batches_per_epoch();
    Reporter reporter(console_, directory, session.settings(), batches);
    if (arguments_.profile) session.set_profile(begin_profile(session.context().device));
    TrainingLoop loop(
        session, directory, reporter,
        {.time = time_, .git = git_, .deadline = deadline(session.settings().max_seconds)});
    const StopReason reason = loop.run();
    reporter.show_outputs();
    console_.info(fmt::format("ended: {}", reason.text));
    const bool is_done =
        reason.kind == StopReason::Kind::kDone || reason.kind == StopReason::Kind::kMetric;
    lock_->end(is_done ? "done" : "stopped");
    if (arguments_.profile) {
      end_profile(*session.context().profile, directory.profile(time_), console_);
    }
    if (!is_done) {
      console_.info("saved; go on with:  " + resume_command(directory.root()));
    }
    if (reason.kind == StopReason::Kind::kSignal) return 128 + reason.signal;
    return loop.failed_callbacks() > 0 ? kCallbackFailed : 0;
  }

  /// `max_time` counts from the start of the process, as a cluster's limit does.
  std::chrono::steady_clock::time_point deadline(double max_seconds) const {
    using Clock = std::chrono::steady_clock;
    constexpr double kForever = 1e9;
    if (max_seconds > kForever) return Clock::time_point::max();
    return begin_ +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(max_seconds));
  }

  int evaluate_only(const RunDirectory& directory, Session& session, const RunSource& source) {
    Reporter reporter(console_, directory, session.settings(), 0);
    const Settings& settings = session.settings();
    int failures = 0;
    const auto evaluate_one = [&] {
      const std::string op = settings.eval_op.text();
      reporter.begin_evaluation();
      const EvaluationResult result = evaluate(
          settings, session.iterator(), session.context(), session.position(),
          directory.root() + "/" + directory.evaluation(time_, session.position().global_step),
          git_, [&](int64_t done, int64_t total) { reporter.evaluating(op, done, total); },
          throw_if_signal_arrived);
      reporter.evaluated(session.position(), result);
      failures += static_cast<int>(result.failures.size());
    };
    if (!settings.eval_all) evaluate_one();
    if (settings.eval_all || settings.eval_forever) {
      const int64_t evaluated = settings.eval_all ? -1 : session.position().global_step;
      CheckpointQueue queue(source.project->checkpoints(), evaluated, settings.eval_forever,
                            deadline(settings.max_seconds));
      while (const auto next = queue.next(console_)) {
        restore(session, *next);
        console_.info(fmt::format("evaluating {} (step {})", *next,
                                  with_thousands(session.position().global_step)));
        evaluate_one();
      }
    }
    reporter.show_outputs();
    return failures == 0 ? 0 : kCallbackFailed;
  }

  const Arguments& arguments_;
  Console console_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::string time_ = time_name();
  std::string git_;
  std::string changes_;  ///< In which the config is not the checkpoint's.
  std::optional<RunLock> lock_;
  std::optional<fs::file_time_type> run_ended_;  ///< When the training before showed life last.
  std::string weights_;                          ///< What init_from loaded.
};

}  // namespace

int run_command(const Arguments& arguments) { return Run(arguments).run(); }

}  // namespace stepop
