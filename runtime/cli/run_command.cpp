#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/cli/commands.h"
#include "runtime/config/resolve.h"
#include "runtime/config/yaml_writer.h"
#include "runtime/error_text.h"
#include "runtime/files/atomic_file.h"
#include "runtime/log/number_text.h"
#include "runtime/loop/evaluation.h"
#include "runtime/loop/reporter.h"
#include "runtime/loop/session.h"
#include "runtime/loop/training_loop.h"
#include "runtime/run/device.h"
#include "runtime/run/run_directory.h"
#include "runtime/run/signals.h"
#include "runtime/run/start_record.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr int kCallbackFailed = 3;

/// `-p RUN/configs/x.yaml` means that config and that run.
struct Source {
  std::vector<std::string> base;
  std::optional<RunDirectory> project;
};

Source find_source(const Arguments& arguments) {
  Source source{arguments.base, std::nullopt};
  if (!arguments.project) return source;
  fs::path path(*arguments.project);
  const bool is_config = path.extension() == ".yaml" && fs::is_regular_file(path);
  if (is_config) source.base.insert(source.base.begin(), path.string());
  source.project =
      RunDirectory::open(is_config ? path.parent_path().parent_path().string() : path.string());
  if (source.base.empty()) source.base.push_back(source.project->last_config());
  return source;
}

/// The checkpoint that `-c` picks, else the latest of `-p`; none for a fresh run.
std::optional<std::string> find_checkpoint(const Arguments& arguments,
                                           const std::optional<RunDirectory>& project) {
  const std::string folder = project ? project->checkpoints() : "";
  if (arguments.checkpoint) {
    const std::string& wanted = *arguments.checkpoint;
    const int64_t step = list_index(wanted);
    std::string path = project && step >= 0 ? folder + "/" + checkpoint_name(step) : wanted;
    if (fs::exists(path)) return path;
    std::string known;
    for (const int64_t there : project ? checkpoint_steps(folder) : std::vector<int64_t>{}) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", there);
    }
    throw UsageError(fmt::format("-c: {}: no such checkpoint{}", path,
                                 known.empty() ? "" : "; there are those of the steps " + known));
  }
  if (!project) return std::nullopt;
  const auto steps = checkpoint_steps(folder);
  if (steps.empty()) return std::nullopt;
  return folder + "/" + checkpoint_name(steps.back());
}

std::string run_name(const Arguments& arguments, const std::optional<RunDirectory>& project,
                     const Config& config) {
  std::string name = project ? project->run_name() : "run";
  if (arguments.name) {
    name = *arguments.name;
  } else if (config.has("experiment_name")) {
    name = config.get<std::string>("experiment_name");
  }
  if (name.empty() || name.find_first_of("/\\\n") != std::string::npos || name[0] == '.') {
    throw UsageError(fmt::format("-n: \"{}\" cannot be a part of a folder's name", name));
  }
  return name;
}

class Run {
 public:
  explicit Run(const Arguments& arguments) : arguments_(arguments), console_(arguments.log_level) {}

  int run() {
    const SignalGuard signals;
    const Source source = find_source(arguments_);
    if (source.base.empty()) {
      throw UsageError("no config given: -b base.yaml, or -p with the folder of a run");
    }
    const auto checkpoint = find_checkpoint(arguments_, source.project);
    if (!arguments_.train && !checkpoint) {
      throw UsageError(
          source.project
              ? fmt::format("{}: the run has no checkpoint to evaluate yet", source.project->root())
              : "nothing to evaluate: give a run with -p or a checkpoint with -c; "
                "-t trains");
    }
    if (arguments_.retrain && !arguments_.train) {
      throw UsageError("-r takes the weights of a run to train on with them: it needs -t");
    }
    Value root = resolve_config(source.base, arguments_.overrides);
    // num_steps wins over num_epochs, but not an old one over what is asked for now.
    const auto is_given = [&](const char* key) {
      return std::any_of(arguments_.overrides.begin(), arguments_.overrides.end(),
                         [&](const Override& given) { return given.path == key; });
    };
    if (is_given("num_epochs") && !is_given("num_steps")) root.as_map().erase("num_steps");
    const Config config(std::move(root));
    make_paths_absolute(config);
    const std::string name = run_name(arguments_, source.project, config);

    Session session(config, arguments_.train, arguments_.debug, arguments_.allow_unknown);
    if (!arguments_.train && !session.settings().evaluates) {
      throw UsageError("nothing to evaluate: the config has no datasets/validation");
    }
    if (checkpoint) restore(session, *checkpoint);
    const bool goes_on = source.project && !arguments_.retrain && !arguments_.debug;
    // Another run's evaluation is not this one's to finish.
    if (!goes_on) session.position().evaluation_folder.clear();
    session.check();
    console_.info(session.config_yaml());
    if (!session.warnings().empty()) console_.warn(session.warnings());

    const RunDirectory directory =
        goes_on ? *source.project
                : RunDirectory::create(arguments_.debug ? "logs/debug_runs" : "logs", time_, name);
    try {
      begin(directory, session, checkpoint);
      return arguments_.train ? train(directory, session) : evaluate_only(directory, session);
    } catch (const std::exception& error) {
      console_.end_progress();
      console_.record(fmt::format("error: {}", error_text(error)));  // main() prints it
      throw;
    }
  }

 private:
  void restore(Session& session, const std::string& path) {
    const Checkpoint checkpoint = load_checkpoint(path);
    if (arguments_.train && !arguments_.retrain) return session.resume(checkpoint, path);
    if (arguments_.train) return session.restore_weights(checkpoint, path);
    session.restore_for_evaluation(checkpoint, path);
  }

  /// Saves the config and says where everything is.
  void begin(const RunDirectory& directory, Session& session,
             const std::optional<std::string>& checkpoint) {
    git_ = git_state();
    fs::create_directories(fs::path(directory.log_file()).parent_path());
    console_.open_log_file(directory.log_file());
    write_file_atomically(fmt::format("{}/{}_{}.yaml", directory.configs(),
                                      arguments_.train ? "train" : "eval", time_),
                          session.config_yaml());
    console_.info(fmt::format("command   {}", arguments_.command_line));
    console_.info(fmt::format("run       {}", directory.root()));
    console_.info(fmt::format("device    {}", describe_device(session.context().device)));
    console_.info(fmt::format("seed      {}", session.context().seed));
    console_.info(fmt::format("git       {}", git_));
    console_.info(fmt::format("process   {} on {}", getpid(), host_name()));
    for (const auto& text : session.context().networks.descriptions()) {
      console_.info(fmt::format("network   {}", text));
    }
    if (!checkpoint) return;
    const Position& position = session.position();
    const std::string what = !arguments_.train    ? "evaluating"
                             : arguments_.retrain ? "weights from"
                                                  : "resuming from";
    console_.info(
        fmt::format("{} {} (step {})", what, *checkpoint, with_thousands(position.global_step)));
  }

  int train(const RunDirectory& directory, Session& session) {
    const int64_t batches = session.context().splits.order("train").batches_per_epoch();
    Reporter reporter(console_, directory, session.settings(), batches);
    TrainingLoop loop({.settings = session.settings(),
                       .iterator = session.iterator(),
                       .context = session.context(),
                       .position = session.position(),
                       .clock = session.clock(),
                       .directory = directory,
                       .reporter = reporter,
                       .start_time = time_,
                       .config_yaml = session.config_yaml(),
                       .git = git_});
    const StopReason reason = loop.run();
    reporter.show_outputs();
    console_.info(fmt::format("ended: {}", reason.text));
    if (reason.kind == StopReason::Kind::kSignal) {
      console_.info(fmt::format("saved; go on with:  stepop -p {} -t", directory.root()));
      return 128 + reason.signal;
    }
    return loop.failed_callbacks() > 0 ? kCallbackFailed : 0;
  }

  int evaluate_only(const RunDirectory& directory, Session& session) {
    Reporter reporter(console_, directory, session.settings(), 0);
    const std::string op = session.settings().eval_op.text();
    reporter.begin_evaluation();
    const EvaluationResult result = evaluate(
        session.settings(), session.iterator(), session.context(), session.position(),
        directory.root() + "/" + directory.evaluation(time_, session.position().global_step), git_,
        [&](int64_t done, int64_t total) { reporter.evaluating(op, done, total); });
    reporter.evaluated(session.position(), result);
    reporter.show_outputs();
    return result.failures.empty() ? 0 : kCallbackFailed;
  }

  const Arguments& arguments_;
  Console console_;
  std::string time_ = time_name();
  std::string git_;
};

}  // namespace

int run_command(const Arguments& arguments) { return Run(arguments).run(); }

}  // namespace stepop
