#include "runtime/tools/cli/start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/config/difference.h"
#include "runtime/core/config/references.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/config/yaml_reader.h"
#include "runtime/core/config/yaml_writer.h"
#include "runtime/core/measure/tensor_memory.h"
#include "runtime/core/system/folders.h"
#include "runtime/data/batch_source.h"
#include "runtime/tools/cli/checkpoint_choice.h"
#include "runtime/tools/cli/evaluate_run.h"
#include "runtime/tools/cli/exit_codes.h"
#include "runtime/tools/cli/record_start.h"
#include "runtime/tools/cli/remedy.h"
#include "runtime/tools/cli/run_source.h"
#include "runtime/tools/cli/shared_start.h"
#include "runtime/tools/cli/train_run.h"
#include "runtime/tools/code/code_copy.h"
#include "runtime/tools/code/code_places.h"
#include "runtime/tools/code/crash_message.h"
#include "runtime/tools/graph/network_graphs.h"
#include "runtime/tools/migrate/from_dlas.h"
#include "runtime/tools/trial/dry_run.h"
#include "runtime/tools/trial/repeat_check.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/checkpoint/shared_state.h"
#include "runtime/train/distributed/processors.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/loop/non_finite_record.h"
#include "runtime/train/loop/session.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/drop_logs_after_step.h"
#include "runtime/train/run/live_change.h"
#include "runtime/train/run/provenance.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/run/signals.h"
#include "runtime/train/run/start_record.h"
#include "runtime/train/run/start_recorder.h"
#include "runtime/train/when/duration.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

class Run {
 public:
  using Clock = std::chrono::steady_clock;

  /// As of `run_start`.
  Run(const Arguments& arguments, Clock::time_point begin, const std::string& notice, World& world,
      bool& has_begun, std::string& root)
      : arguments_(arguments),
        world_(world),
        console_(world.is_root() ? arguments.log_level : LogLevel::kCritical),
        begin_(begin),
        notice_(notice),
        has_begun_(has_begun),
        root_(root) {}

  StartEnd run() {
    const CrashMessage crash_at_start;
    world_.check_same("the command line", arguments_.command_line);
    goes_on_ = continues_run(arguments_);
    std::optional<TensorMemory> memory;
    if (arguments_.check) memory.emplace();
    RunSource source;  // of rank 0
    if (world_.is_root()) {
      source = find_source(arguments_);
      check_arguments(arguments_, source);
      // From here on nobody else adds to the run, not even while this start finds its checkpoint.
      if (goes_on_ && arguments_.train && !arguments_.check) lock(*source.project);
      checkpoint_ = choose_checkpoint(arguments_, source, console_);
      check_checkpoint(arguments_, source, checkpoint_.has_value());
      code_ = read_run_config(arguments_, source);
    }
    share_config(world_, arguments_, source, code_);
    share_checkpoint();
    const Config& config = code_.config;
    refuse_dlas(config);
    const std::string name =
        world_.from_root([&] { return run_name(arguments_, source.project, config); });
    if (world_.is_root() && !arguments_.train && !checkpoint_) {
      check_without_checkpoint(source, config);
    }
    if (config.has("distributed/timeout")) {
      world_.set_time_limit(read_seconds(config, "distributed/timeout"));
    }
    if (config.get("distributed/bind", false)) bind();

    // A dataset may wait for what never comes.
    std::optional<InterruptScope> interrupt(throw_if_signal_arrived);
    Session session(config, arguments_.train, arguments_.debug, arguments_.allow_unknown, &world_);
    CrashMessage crash;
    crash.set_place(session.position().global_step, session.position().split);
    session.show_log(console_);
    session.set_run({.name = name, .is_resuming = goes_on_});
    prepare(session, source);
    if (arguments_.check) return {check(session, *memory)};
    interrupt.reset();
    const RunDirectory directory = take_directory(session, source, name);
    root_ = fs::absolute(directory.root()).string();
    session.set_run({root_, name, goes_on_});
    if (!world_.is_root()) return run_elsewhere(directory, session);
    if (arguments_.train && !lock_) lock(directory);
    if (arguments_.train) crash.set_remedy(remedy_after_crash(directory, has_own_code()));
    return run_in(directory, session);
  }

 private:
  void bind() {
    if (world_.is_alone() || !bind_to_share(world_.place()).empty()) return;
    console_.warn(fmt::format(
        "distributed/bind: {} processes of this machine have fewer processors: none is bound",
        world_.place().local_size));
  }

  /// That of -p, or a new one, which rank 0 makes.
  RunDirectory take_directory(Session& session, const RunSource& source, const std::string& name) {
    std::optional<RunDirectory> made = source.project;
    const std::string path = world_.from_root([&] {
      if (!goes_on_) {
        const auto save = [&](const RunDirectory& directory) {
          if (arguments_.train) save_beginning(directory, session);
        };
        made = RunDirectory::create(arguments_.logs + (arguments_.debug ? "/debug_runs" : ""),
                                    time_, name, fmt::format("{}_{}.yaml", mode(), time_),
                                    session.config_with_defaults(), save);
      }
      return fs::absolute(made->root()).string();
    });
    return made ? *made : RunDirectory::at(path);
  }

  /// The same as `run_in`, in a process that writes nothing.
  StartEnd run_elsewhere(const RunDirectory& directory, Session& session) {
    has_begun_ = true;
    const SharedStart start = share_start(world_, {});
    if (arguments_.train) {
      const TrainingEnd end = train_run(console_, directory, session,
                                        {.time = start.time,
                                         .git = start.git,
                                         .deadline = Clock::time_point::max(),
                                         .profiles = arguments_.profile,
                                         .takes_changes = !arguments_.debug},
                                        nullptr);
      return {end.exit_code, end.is_changed ? directory.root() : ""};
    }
    const int failures = evaluate_run(console_, directory, session,
                                      {.time = start.time,
                                       .git = start.git,
                                       .checkpoint = checkpoint_,
                                       .deadline = Clock::time_point::max()});
    return {failures == 0 ? 0 : kCallbackFailed};
  }

  /// What rank 0 read is everybody's.
  void share_checkpoint() {
    std::optional<Checkpoint> read;
    if (checkpoint_) read = checkpoint_->checkpoint;
    const std::string path =
        world_.from_root([&] { return checkpoint_ ? checkpoint_->path : std::string(); });
    auto shared = broadcast_checkpoint(world_, std::move(read));
    if (!world_.is_root() && shared) checkpoint_ = ChosenCheckpoint{path, std::move(*shared)};
  }

  /// All that can be wrong is found here, before there is a folder.
  void prepare(Session& session, const RunSource& source) {
    const bool is_root = world_.is_root();
    if (is_root) check_session(arguments_, source, session);
    if (checkpoint_) restore(session);
    if (is_root && !checkpoint_ && (arguments_.train || !source.project)) {
      weights_ = session.init_weights();
    }
    session.share_beginning();
    is_from_elsewhere_ = world_.from_root([&] {
      return checkpoint_ && !(goes_on_ && is_of(*source.project, session, checkpoint_->path)) ? "1"
                                                                                              : "0";
    }) == "1";
    // Another run's evaluation is not this one's to finish.
    if (is_from_elsewhere_) {
      session.position().evaluation_folder.clear();
      session.position().evaluations.clear();
    }
    session.initialize();
    session.check(logged_graph);
    throw_if_signal_arrived();
    if (!arguments_.check) console_.info(session.config_yaml());
    if (!session.warnings().empty()) console_.warn(session.warnings());
    if (!session.log_notice().empty()) console_.info(session.log_notice());
    const std::string notices = session.context().splits.notices();
    if (!notices.empty()) console_.info(notices);
  }

  StartEnd run_in(const RunDirectory& directory, Session& session) {
    try {
      if (lock_) lock_->begin();
      if (goes_on_ && !checkpoint_ && arguments_.train) {
        compare_with_last_config(directory, session);
      }
      if (goes_on_ && arguments_.train)
        time_ = take_time(directory, "train", session.config_with_defaults());
      has_begun_ = true;
      begin(directory, session);
      if (arguments_.takes_change) LiveChange(directory).take(time_);
      if (!code_.code_note.empty()) console_.info(code_.code_note);
      if (!notice_.empty()) console_.warn(notice_);
      if (arguments_.train) {
        record(directory, session, time_);
        CodeCopy(directory.root()).save(code_.code_files, time_);
        share_start(world_, {time_, git_});
        const TrainingEnd end = train_run(console_, directory, session,
                                          {.time = time_,
                                           .git = git_,
                                           .deadline = deadline(session.settings().max_seconds),
                                           .profiles = arguments_.profile,
                                           .takes_changes = !arguments_.debug},
                                          &*lock_);
        return {end.exit_code, end.is_changed ? directory.root() : ""};
      }
      if (!goes_on_) record(directory, session, time_);
      share_start(world_, {goes_on_ ? "" : time_, git_});
      const int failures =
          evaluate_run(console_, directory, session,
                       {.time = goes_on_ ? "" : time_,
                        .git = git_,
                        .checkpoint = checkpoint_,
                        .deadline = deadline(session.settings().max_seconds),
                        .time_taken = [&](const auto& time) { record(directory, session, time); }});
      return {failures == 0 ? 0 : kCallbackFailed};
    } catch (const std::exception& error) {
      console_.end_progress();
      const auto* ours = dynamic_cast<const Error*>(&error);
      const int exit_code = ours != nullptr ? ours->exit_code() : 1;
      const std::string text =
          with_places(error_text(error), exit_code) + what_next(error, directory);
      record_error(text);
      throw Error(text, exit_code);
    }
  }

  /// Records what this start is made of, beside its config.
  void record(const RunDirectory& directory, Session& session, const std::string& time) {
    StartRecord start{.kind = kind(),
                      .time = time,
                      .command = arguments_.command_line,
                      .is_debug = arguments_.debug,
                      .allows_unknown = arguments_.allow_unknown,
                      .processes = world_.size(),
                      .launcher = world_.place().launcher};
    if (checkpoint_) {
      start.checkpoint = checkpoint_->path;
      start.checkpoint_checksum = checkpoint_->checkpoint.checksum;
    }
    std::string problem;
    try {
      recorder_.reset();
      recorder_ = record_start(directory, mode(), std::move(start), session, code_.variables);
      problem = recorder_->problem();
    } catch (const std::exception& error) {
      problem = error_text(error);
    }
    if (problem.empty()) return;
    console_.warn("what this start is made of is not recorded: " + problem);
  }

  const char* kind() const {
    if (!arguments_.train) return "evaluation";
    if (arguments_.takes_change) return "change";
    if (arguments_.retrain) return "weights";
    return goes_on_ ? "resume" : "new";
  }

  const char* mode() const { return arguments_.train ? "train" : "eval"; }

  /// For the log; main() prints it. A log that cannot be written is not to hide what happened.
  void record_error(const std::string& text) {
    try {
      console_.record("error: " + text);
    } catch (const Error&) {
    }
  }

  /// For an error that ended a training: how to resume.
  std::string what_next(const std::exception& error, const RunDirectory& directory) const {
    const bool says_so = dynamic_cast<const ErrorWithCommand*>(&error) != nullptr;
    return arguments_.train && !says_so ? "\n" + remedy_after_error(directory, has_own_code()) : "";
  }

  bool has_own_code() const { return code_.config.peek("code") != nullptr; }

  /// The exit status.
  int check(Session& session, TensorMemory& memory) {
    if (checkpoint_) console_.info("weights   " + checkpoint_->path);
    if (!weights_.empty()) console_.info("init_from " + weights_);
    try_everything(session, memory, console_, arguments_.graph);
    const std::string difference = arguments_.train ? check_repeats(session) : "";
    if (difference.empty()) return 0;
    console_.warn(difference);
    // Operations of a GPU may differ by themselves.
    return session.context().device.is_cpu() ? kDoesNotRepeat : 0;
  }

  void lock(const RunDirectory& directory) {
    make_folders(fs::path(directory.process_file()).parent_path().string());
    // Evaluations beside the training write neither.
    for (const auto& path : {directory.process_file(), directory.metrics_file()}) {
      std::error_code failed;
      const auto time = fs::last_write_time(path, failed);
      if (!failed && (!run_ended_ || time > *run_ended_)) run_ended_ = time;
    }
    lock_.emplace(directory.process_file(), time_);
  }

  void restore(Session& session) {
    auto& [path, checkpoint] = *checkpoint_;
    if (!arguments_.train) {
      session.restore_for_evaluation(checkpoint, path);
    } else if (arguments_.retrain) {
      session.restore_weights(checkpoint, path);
    } else {
      session.resume(checkpoint, path);
      machine_ = describe_change_of_machine(checkpoint.made_by, session.made_by());
      changes_ = differences_to(checkpoint.config, session);
    }
    checkpoint.tensors.clear();  // they are as large as the session
  }

  /// Whether a checkpoint is the one that the run itself has of this step.
  static bool is_of(const RunDirectory& directory, Session& session, const std::string& path) {
    const CheckpointFolder own(directory.checkpoints());
    std::error_code failed;
    return fs::equivalent(path, own.path_of(session.position().global_step), failed);
  }

  /// Weights that came from elsewhere: should this start be killed early, the next one finds them
  /// in the run.
  void save_beginning(const RunDirectory& directory, const Session& session) const {
    if (is_from_elsewhere_) save_checkpoint(directory.checkpoints(), session.checkpoint());
  }

  static std::string differences_to(const std::string& yaml, const Session& session) {
    return describe(
        differences(parse_yaml(yaml, {"", 0}), parse_yaml(session.config_yaml(), {"", 0})));
  }

  /// Without a checkpoint, what changed since the last start.
  void compare_with_last_config(const RunDirectory& directory, const Session& session) {
    const Value last = resolve_config({directory.last_config()}, {});
    changes_ = differences_to(to_yaml(escape_references(last)), session);
  }

  /// Says what begins, and where everything is.
  void begin(const RunDirectory& directory, Session& session) {
    git_ = git_state();
    make_folders(directory.checkpoints());  // beside the log, and missing when someone removed it
    console_.open_log_file(directory.log_file());
    console_.info(fmt::format("command   {}", arguments_.command_line));
    console_.info(fmt::format("run       {}", directory.root()));
    console_.info(fmt::format("device    {}", describe_device(session.context().device)));
    console_.info(fmt::format("seed      {}", session.context().seed));
    console_.info(fmt::format("git       {}", git_));
    console_.info(fmt::format("process   {} on {}", getpid(), host_name()));
    for (int rank = 1; rank < world_.size(); ++rank) {
      console_.info(fmt::format("          {}", world_.describe(rank)));
    }
    for (const auto& text : session.context().networks.descriptions()) {
      console_.info(fmt::format("network   {}", text));
    }
    if (!weights_.empty()) console_.info(fmt::format("init_from {}", weights_));
    for (const auto& text : session.freezing().descriptions()) console_.info(text);
    if (!machine_.empty()) console_.info(machine_);
    if (arguments_.train && goes_on_) return resume(directory, session);
    if (!checkpoint_) return;
    if (arguments_.retrain) return console_.info("weights from " + checkpoint_->path);
    if (session.settings().eval_all) return;  // each is reported
    console_.info(fmt::format("{} {} (step {})",
                              arguments_.train ? "a new run, which continues from" : "evaluating",
                              checkpoint_->path, with_thousands(session.position().global_step)));
  }

  /// Says where the training resumes, and makes room for it.
  void resume(const RunDirectory& directory, Session& session) {
    const Position& position = session.position();
    if (lock_->before().state == "running") {
      console_.info(fmt::format("the last training of this run, process {} on {}, was killed",
                                lock_->before().pid, lock_->before().host));
    }
    if (checkpoint_) {
      console_.info(resume_text(directory, session, checkpoint_->path));
    } else {
      say_there_is_none(directory, session.context().seed);
    }
    if (!changes_.empty()) {
      console_.info(fmt::format("the config differs from {}'s:\n{}",
                                checkpoint_ ? "the checkpoint" : "the last start", changes_));
    }
    sweep_temporaries(directory.root());
    int64_t last_step = checkpoint_ ? position.global_step : int64_t{-1};
    if (is_from_elsewhere_) --last_step;  // what the run itself has of that step is another one's
    const DroppedLogs moved = drop_logs_after_step(directory, last_step, time_);
    save_beginning(directory, session);
    if (!moved.repaired.empty()) console_.info(moved.repaired);
    if (moved.folder.empty()) return;
    console_.info(fmt::format("what came after step {} moved to {}",
                              with_thousands(std::max<int64_t>(last_step, 0)), moved.folder));
  }

  /// There is no checkpoint. A training that ended by itself, or that a signal stopped after a
  /// step, wrote one.
  void say_there_is_none(const RunDirectory& directory, uint64_t seed) {
    const std::string again = fmt::format("starting again at step 0, seed {}", seed);
    const std::string& state = lock_->before().state;
    std::error_code failed;
    const auto logged = fs::file_size(directory.metrics_file(), failed);
    if (state != "done" && (state != "stopped" || failed || logged == 0)) {
      return console_.info("no checkpoint was written yet: " + again);
    }
    console_.warn(
        fmt::format("{}: no checkpoint is there, though the last training ended as \"{}\" "
                    "and left one: was the folder removed? {}",
                    directory.checkpoints(), state, again));
  }

  std::string resume_text(const RunDirectory& directory, Session& session,
                          const std::string& checkpoint) {
    const Position& position = session.position();
    const BatchOrder& order = session.context().splits.order("train");
    const std::string epoch = short_number(position.fractional_epoch());
    std::string text =
        fmt::format("resuming at step {} {} {} (epoch {}, position {} of its order) from {}",
                    with_thousands(position.global_step),
                    position.global_step <= session.settings().num_steps ? "of" : "past the end at",
                    with_thousands(session.settings().num_steps), epoch,
                    with_thousands(order.examples_in(position.batch, position.epoch)),
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

  /// `max_time` counts from the start of the process, as a cluster's limit does.
  std::chrono::steady_clock::time_point deadline(double max_seconds) const {
    constexpr double kForever = 1e9;
    if (max_seconds > kForever) return Clock::time_point::max();
    return begin_ +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(max_seconds));
  }

  const Arguments& arguments_;
  World& world_;
  Console console_;
  Clock::time_point begin_;
  const std::string& notice_;
  bool& has_begun_;
  std::string& root_;
  std::string time_ = time_name();
  bool goes_on_ = false;  ///< In the run of -p, not in a new one.
  RunConfig code_;        ///< The config, and what code of the user's it named.
  std::optional<ChosenCheckpoint> checkpoint_;  ///< Without its tensors once they are restored.
  std::string git_;
  std::string changes_;  ///< In which the config is not the checkpoint's.
  std::string machine_;  ///< In which that on which the checkpoint was taken was another.
  std::optional<RunLock> lock_;
  std::optional<fs::file_time_type> run_ended_;  ///< When the training before showed life last.
  std::string weights_;                          ///< What init_from loaded.
  std::unique_ptr<StartRecorder> recorder_;
  bool is_from_elsewhere_ = false;  ///< The checkpoint at the beginning is not of this run.
};

}  // namespace

StartEnd run_start(const Arguments& arguments, std::chrono::steady_clock::time_point begin,
                   const std::string& notice, World& world, bool& has_begun, std::string& root) {
  return Run(arguments, begin, notice, world, has_begun, root).run();
}

}  // namespace stepop
