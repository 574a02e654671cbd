#include "runtime/tools/start/start.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/config/references.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/cli/exit_codes.h"
#include "runtime/tools/cli/remedy.h"
#include "runtime/tools/code/code_copy.h"
#include "runtime/tools/code/code_places.h"
#include "runtime/tools/code/script_copies.h"
#include "runtime/tools/start/evaluate_run.h"
#include "runtime/tools/start/opening.h"
#include "runtime/tools/start/record_start.h"
#include "runtime/tools/start/shared_start.h"
#include "runtime/train/run/live_change.h"
#include "runtime/train/run/provenance.h"
#include "runtime/train/run/start_record.h"
#include "runtime/train/run/start_recorder.h"
#include "runtime/train/session/non_finite_record.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

const char* mode_of(const Arguments& arguments) { return arguments.train ? "train" : "eval"; }

const char* kind_of(const Arguments& arguments, bool is_resuming) {
  if (!arguments.train) return "evaluation";
  if (arguments.takes_change) return "change";
  if (arguments.retrain) return "weights";
  return is_resuming ? "resume" : "new";
}

/// The folder of -p, or a new one, which rank 0 makes.
RunDirectory take_directory(const Start& start) {
  const Arguments& arguments = start.arguments;
  std::optional<RunDirectory> made = start.opened.source.project;
  const std::string path = start.world.from_root([&] {
    if (!start.opened.is_resuming) {
      const auto save = [&](const RunDirectory& directory) {
        if (arguments.train) save_beginning(start.built, directory);
      };
      const std::string& time = start.opened.time;
      made = RunDirectory::create(arguments.logs + (arguments.debug ? "/debug_runs" : ""), time,
                                  start.opened.name,
                                  fmt::format("{}_{}.yaml", mode_of(arguments), time),
                                  start.built.session->config_with_defaults(), save);
    }
    return fs::absolute(made->root()).string();
  });
  return made ? *made : RunDirectory::at(path);
}

/// In the log; main() prints the error. A log that cannot be written is not to hide what happened.
void record_error(Console& console, const std::string& text) {
  try {
    console.record("error: " + text);
  } catch (const Error&) {
  }
}

/// Calls `function` in rank 0. Its error gets the places in the user's code and how to resume.
template <class Function>
auto with_remedy(const Start& start, const RunDirectory& directory, const Function& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    start.console.end_progress();
    const auto* ours = dynamic_cast<const Error*>(&error);
    const int exit_code = ours != nullptr ? ours->exit_code() : 1;
    std::string text = with_places(error_text(error), exit_code);
    const bool says_so = dynamic_cast<const ErrorWithCommand*>(&error) != nullptr;
    if (start.arguments.train && !says_so) {
      text += "\n" + remedy_after_error(directory, start.opened.has_own_code());
    }
    record_error(start.console, text);
    if (start.opened.lock) start.opened.lock->fail(text);
    throw Error(text, exit_code);
  }
}

/// `max_time` counts from the start of the process, as a cluster's limit does.
Clock::time_point deadline(Clock::time_point process_begin, double max_seconds) {
  constexpr double kForever = 1e9;
  if (max_seconds > kForever) return Clock::time_point::max();
  return process_begin +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(max_seconds));
}

/// Records what a start is made of beside its config, once or for each of several evaluations.
class Recording {
 public:
  Recording(const Start& start, const RunDirectory& directory)
      : start_(start), directory_(directory) {}

  void record(const std::string& time) {
    const Arguments& arguments = start_.arguments;
    StartRecord made_of{.kind = kind_of(arguments, start_.opened.is_resuming),
                        .time = time,
                        .command = arguments.command_line,
                        .is_debug = arguments.debug,
                        .allows_unknown = arguments.allow_unknown,
                        .processes = start_.world.size(),
                        .launcher = start_.world.place().launcher,
                        .code_compiler = start_.opened.run.code.compiler};
    if (const auto& checkpoint = start_.opened.checkpoint) {
      made_of.checkpoint = checkpoint->path;
      made_of.checkpoint_checksum = checkpoint->checkpoint.checksum;
    }
    std::string problem;
    try {
      note_configs(made_of);
      recorder_.reset();
      recorder_ = record_start(directory_, mode_of(arguments), std::move(made_of),
                               *start_.built.session, start_.opened.run.variables);
      problem = recorder_->problem();
    } catch (const std::exception& error) {
      problem = error_text(error);
    }
    if (problem.empty()) return;
    start_.console.warn("what this start is made of is not recorded: " + problem);
  }

 private:
  /// A change in mid-run has a file that is there for a moment.
  void note_configs(StartRecord& made_of) const {
    const RunSource& source = start_.opened.source;
    if (start_.arguments.takes_change || !source.files) return;
    for (const auto& file : source.base) {
      if (file == source.config_of_run || !fs::is_regular_file(file)) continue;
      made_of.configs.push_back(fs::absolute(file).lexically_normal().string());
    }
    if (made_of.configs.empty()) return;
    std::set<std::string> files(source.base.begin(), source.base.end());
    add_files(*source.files, files);
    for (const auto& file : files) {
      if (file == source.config_of_run || !fs::is_regular_file(file)) continue;
      made_of.config_files.set(fs::absolute(file).lexically_normal().string(),
                               content_checksum(read_file(file)));
    }
  }

  /// Adds the files from which the values come, included ones among them.
  static void add_files(const Value& value, std::set<std::string>& files) {
    files.insert(value.origin().file);
    if (value.is_list()) {
      for (const auto& item : value.as_list()) add_files(item, files);
    } else if (value.is_map()) {
      for (const auto& [key, item] : value.as_map()) add_files(item, files);
    }
  }

  const Start& start_;
  const RunDirectory& directory_;
  std::unique_ptr<StartRecorder> recorder_;
};

TrainingEnd evaluate(Start& start, const RunDirectory& directory, EvaluationStart evaluation) {
  evaluation.checkpoint = start.opened.checkpoint;
  evaluation.shows_numbers = start.arguments.log_level == LogLevel::kWarning;
  const int failures =
      evaluate_run(start.console, directory, *start.built.session, std::move(evaluation));
  return {.exit_code = failures == 0 ? 0 : kCallbackFailed};
}

/// The work of a process that writes nothing.
TrainingEnd carry_out_elsewhere(Start& start, const RunDirectory& directory) {
  const SharedStart shared = share_start(start.world, {});
  const auto forever = Clock::time_point::max();
  if (!start.arguments.train) {
    return evaluate(start, directory,
                    {.time = shared.time, .git = shared.git, .deadline = forever});
  }
  return train_run(start.console, directory, *start.built.session,
                   {.time = shared.time,
                    .git = shared.git,
                    .deadline = forever,
                    .profiles = start.arguments.profile,
                    .takes_changes = !start.arguments.debug},
                   nullptr);
}

TrainingEnd carry_out_in_root(Start& start, const RunDirectory& directory,
                              Clock::time_point process_begin, const std::string& notice) {
  const Arguments& arguments = start.arguments;
  Console& console = start.console;
  Session& session = *start.built.session;
  const std::string git = git_state();
  make_folders(directory.checkpoints());  // beside the log, and missing when someone removed it
  console.open_log_file(directory.log_file());
  show_opening(start, directory, git);
  const std::string& time = start.opened.time;
  if (!start.opened.run.code_note.empty()) console.info(start.opened.run.code_note);
  if (start.opened.is_resuming && !arguments.rewind) {
    const std::string note = config_note(arguments, start.opened.source);
    if (!note.empty()) console.info(note);
  }
  if (!notice.empty()) console.warn(notice);

  Recording recording(start, directory);
  const auto limit = deadline(process_begin, session.settings().max_seconds);
  if (arguments.train) {
    recording.record(time);
    CodeCopy(directory.root()).save(start.opened.run.code.files, time);
    save_scripts(*session.config().root().peek(), directory.root());
    // Who waits for the change finds what was recorded.
    if (arguments.takes_change) LiveChange(directory).take(arguments.base.back(), time);
    share_start(start.world, {time, git});
    return train_run(console, directory, session,
                     {.time = time,
                      .git = git,
                      .deadline = limit,
                      .profiles = arguments.profile,
                      .takes_changes = !arguments.debug},
                     start.opened.lock.get());
  }
  // Each evaluation in the run of -p takes a time of its own.
  const std::string own_time = start.opened.is_resuming ? "" : time;
  if (!start.opened.is_resuming) recording.record(time);
  share_start(start.world, {own_time, git});
  return evaluate(
      start, directory,
      {.time = own_time, .git = git, .deadline = limit, .time_taken = [&](const auto& taken) {
         recording.record(taken);
       }});
}

}  // namespace

RunDirectory begin_start(Start& start) {
  const Arguments& arguments = start.arguments;
  OpenedStart& opened = start.opened;
  Session& session = *start.built.session;
  RunDirectory directory = take_directory(start);
  session.set_run({fs::absolute(directory.root()).string(), opened.name, opened.is_resuming});
  if (!start.world.is_root() || !arguments.train) return directory;
  if (!opened.lock) lock_run(opened, directory);
  start.built.crash->set_remedy(remedy_after_crash(directory, opened.has_own_code()));
  with_remedy(start, directory, [&] {
    opened.lock->begin();
    if (!opened.is_resuming) return;
    if (!opened.checkpoint) {
      const Value last = resolve_config({directory.last_config()}, {});
      start.built.changes = differences_to(to_yaml(escape_references(last)), session);
    }
    opened.time = take_time(directory, "train", session.config_with_defaults());
  });
  return directory;
}

TrainingEnd carry_out(Start& start, const RunDirectory& directory, Clock::time_point process_begin,
                      const std::string& notice) {
  if (start.world.is_root()) {
    return with_remedy(start, directory,
                       [&] { return carry_out_in_root(start, directory, process_begin, notice); });
  }
  return carry_out_elsewhere(start, directory);
}

}  // namespace stepop
