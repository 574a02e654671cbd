#include "runtime/tools/start/run_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/owner.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_text.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/remedy.h"
#include "runtime/tools/code/build_settings.h"
#include "runtime/tools/code/code_copy.h"
#include "runtime/tools/code/script_copies.h"
#include "runtime/tools/start/evaluation_config.h"
#include "runtime/tools/start/run_starts.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace fs = std::filesystem;

RunSource find_source(const Arguments& arguments) {
  RunSource source{.base = arguments.base, .project = std::nullopt};
  if (!arguments.project) return source;
  fs::path path(*arguments.project);
  const bool is_config = path.extension() == ".yaml" && fs::is_regular_file(path);
  if (is_config) {
    source.config_of_run = path.string();
    path = fs::path(*arguments.project).parent_path() / "..";
    if (!fs::is_directory(path / "configs")) {
      throw UsageError(
          fmt::format("-p: {}: a config outside of a run's configs/; -b takes configs, "
                      "-p the folder of a run, logs/<time>_<name>",
                      source.config_of_run));
    }
  }
  try {
    source.project = RunDirectory::open(path.string());
  } catch (const UsageError& error) {
    throw UsageError(error.what() + run_near(path.string()));
  }
  const bool needs_one = source.base.empty() || arguments.predicts;
  if (needs_one && !is_config) source.config_of_run = source.project->last_config();
  if (!source.config_of_run.empty()) {
    source.base.insert(source.base.begin(), source.config_of_run);
  }
  return source;
}

Arguments with_newest_run(const Arguments& given) {
  if (!given.name || !given.train || given.project || given.retrain || given.debug) {
    throw UsageError(
        "--resume: resumes the newest run of a name, or begins it: -n NAME -b CONFIG -t --resume; "
        "without -p, -r and -d");
  }
  std::string newest;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(given.logs, failed)) {
    const std::string folder = entry.path().filename().string();
    const std::string time = time_in(folder);
    // The folders' names begin with their times.
    if (time.empty() || folder != time + "_" + *given.name || folder <= newest) continue;
    if (fs::is_directory(entry.path() / "configs", failed)) newest = folder;
  }
  if (newest.empty()) return given;
  Arguments arguments = given;
  arguments.project = (fs::path(given.logs) / newest).string();
  arguments.name.reset();
  arguments.base.clear();
  arguments.logs = Arguments().logs;
  return arguments;
}

UserCode load_code(const Config& config, const std::string& run, Optimization optimization) {
  const auto say = [](const std::string& text) {
    fmt::print(stderr, "{}{}", text, text.ends_with('\n') ? "" : "\n");
  };
  const CodeCopy copy(run);
  const std::string reason = copy.is_there() ? foreign_reason(run + "/code") : "";
  if (!reason.empty()) {
    say(fmt::format("warning: the code in {}/code is run, and {}", run, reason));
  }
  return load_user_code(config, copy.is_there() ? &copy : nullptr, optimization, say,
                        throw_if_signal_arrived);
}

Optimization optimization_of(const Arguments& arguments) {
  return arguments.debug || arguments.check ? Optimization::kQuick : Optimization::kFull;
}

std::string code_note(const std::string& run, bool is_current) {
  const auto differences = CodeCopy(run).differences();
  if (differences.empty()) return "";
  const std::string changes = fmt::format("{}", fmt::join(differences, ", "));
  return is_current
             ? fmt::format("code      as it is now; since the run's own copy was made {}", changes)
             : fmt::format(
                   "code      the run's own copy; since it was made {}: "
                   "--current-code takes what is there now",
                   changes);
}

std::string config_note(const Arguments& arguments, const RunSource& source) {
  const bool is_own = source.project && source.base.size() == 1 &&
                      source.base.front() == source.config_of_run && !arguments.takes_change;
  if (!is_own) return "";
  const auto start = start_with_configs(*source.project);
  if (!start) return "";
  const auto shown = [](const std::string& path) {
    const std::string near = fs::path(path).lexically_proximate(fs::current_path()).string();
    return near.starts_with("..") ? path : near;
  };
  std::vector<std::string> changed;
  for (const auto& [path, checksum] : start->config_files) {
    const auto content = try_read_file(path);
    if (!content) return "";  // they cannot be given again as they are
    if (content_checksum(*content) != checksum) changed.push_back(shown(path) + " changed");
  }
  std::string words;
  for (const auto& path : start->configs) words += " " + shell_word(shown(path));
  if (changed.empty()) return "";
  const std::string run = arguments.resume ? "-p " + shell_word(source.project->root()) + " " : "";
  return fmt::format(
      "config    the run's own; since it was made {}: {}-b{} takes what is there now",
      fmt::join(changed, ", "), run, words);
}

namespace {

/// An example as the help names it, from a folder that has no examples.
void refuse_absent_example(const std::string& file) {
  std::error_code failed;
  if (!file.starts_with("configs/") || fs::exists(file, failed)) return;
  const fs::path ours = fs::path(build_settings().templates).parent_path().parent_path() / file;
  if (!fs::is_regular_file(ours, failed)) return;
  throw UsageError(
      fmt::format("cannot read {}: No such file or directory; the one that comes with stepop is {}",
                  file, ours.lexically_normal().string()));
}

}  // namespace

const Value& RunSource::read_files() {
  if (!files) std::ranges::for_each(base, refuse_absent_example);
  if (!files) files = read_config_files(base);
  return *files;
}

const ResolvedConfig& RunSource::resolve(const std::vector<Override>& overrides) {
  if (!resolved || resolved->overrides != overrides) {
    std::set<std::string> variables;
    Value root = resolve_files(read_files(), overrides, &variables);
    resolved = ResolvedConfig{overrides, std::move(root), std::move(variables)};
  }
  return *resolved;
}

RunConfig read_run_config(const Arguments& arguments, RunSource& source) {
  auto [overrides, root, variables] = source.resolve(arguments.overrides);
  // num_steps overrides num_epochs, but an old num_steps must not override a num_epochs given now.
  const auto is_given = [&](const char* key) {
    return std::any_of(arguments.overrides.begin(), arguments.overrides.end(),
                       [&](const Override& given) { return given.path == key; });
  };
  if (is_given("num_epochs") && !is_given("num_steps")) root.as_map().erase("num_steps");
  if (!arguments.train) {
    if (arguments.predicts) make_prediction(root, arguments.base, source.config_of_run);
    if (names_evaluation(arguments) && arguments.name) name_evaluation(root, *arguments.name);
    leave_callbacks_to_functor(root, source.config_of_run);
  }
  std::vector<std::string> notes;
  if (source.project) notes = take_script_copies(root, source.project->root());
  RunConfig result{.config = Config(std::move(root)), .variables = std::move(variables)};
  const bool takes_copy = source.project && !arguments.current_code;
  result.code = load_code(result.config, takes_copy ? source.project->root() : "",
                          optimization_of(arguments));
  if (source.project && !result.code.files.empty()) {
    const std::string note = code_note(source.project->root(), arguments.current_code);
    if (!note.empty()) notes.push_back(note);
  }
  result.code_note = fmt::format("{}", fmt::join(notes, "\n"));
  make_paths_absolute(result.config);
  return result;
}

std::string run_name(const Arguments& arguments, const std::optional<RunDirectory>& project,
                     const Config& config) {
  std::string name = project ? project->run_name() : "run";
  if (arguments.name && !names_evaluation(arguments)) {
    name = *arguments.name;
  } else if (config.has("experiment_name")) {
    name = config.get<std::string>("experiment_name");
  }
  constexpr size_t kMostBytes = 200;  // of the 255 in a folder's name, which begins with a time
  if (!project && name.size() > kMostBytes) {
    throw UsageError(fmt::format("-n: \"{}\" has {} bytes; a name may have {}", shortened(name, 20),
                                 name.size(), kMostBytes));
  }
  if (name.empty() || name.find_first_of("/\\\n") != std::string::npos || name[0] == '.') {
    throw UsageError(fmt::format("-n: \"{}\" cannot be a part of a folder's name", name));
  }
  // Checkpoints contain the name, in the names of evaluations.
  if (!is_utf8(name)) throw UsageError(fmt::format("-n: \"{}\" is not UTF-8 text", name));
  return name;
}

namespace {

/// Checkpoints and outputs store the config, and their texts are UTF-8.
void check_utf8(const std::string& config) {
  const auto bad = find_bad_byte(config);
  if (!bad) return;
  std::istringstream lines(config);
  std::string line;
  for (int i = 0; i <= bad->line; ++i) std::getline(lines, line);
  throw UsageError(fmt::format(
      "the config has text that is not UTF-8, which checkpoints and outputs cannot hold: {}\n"
      "give that file or folder another name",
      line.substr(line.find_first_not_of(' '))));
}

void check_evaluation(const Arguments& arguments, const RunSource& source,
                      const Settings& settings) {
  if (arguments.train || !(settings.eval_all || settings.eval_forever)) return;
  const char* key = settings.eval_all ? "eval_all" : "eval_forever";
  if (!source.project) {
    throw UsageError(fmt::format("{} takes the checkpoints of a run: name it with -p", key));
  }
  if (arguments.checkpoint) {
    throw UsageError(fmt::format("{} and -c: -c is for one checkpoint", key));
  }
}

}  // namespace

bool continues_run(const Arguments& arguments) {
  return arguments.project && !arguments.retrain && !arguments.debug;
}

bool names_evaluation(const Arguments& arguments) {
  return continues_run(arguments) && !arguments.train;
}

void check_arguments(const Arguments& arguments, const RunSource& source) {
  if (source.base.empty()) {
    throw UsageError("no config given: -b base.yaml, or -p with the folder of a run" +
                     keys_taken(arguments));
  }
  if (source.project && !is_utf8(source.project->folder_name())) {
    throw UsageError(fmt::format(
        "-p: {}: its name is not UTF-8 text, so no checkpoint can hold it: rename the folder",
        source.project->root()));
  }
  if (continues_run(arguments) && arguments.name && arguments.train) {
    throw UsageError(fmt::format(
        "-n {}: -p {} continues that run, which keeps its name: leave out -n; for a new run "
        "that starts with its weights, add -r",
        *arguments.name, *arguments.project));
  }
  if (continues_run(arguments) && arguments.logs != "logs") {
    throw UsageError(fmt::format("--logs {}: it is for new runs; -p {} stays where it is",
                                 arguments.logs, *arguments.project));
  }
  if (arguments.graph && !arguments.check) {
    throw UsageError("--graph shows what networks compute on the batch of --check: give both");
  }
  if (arguments.retrain && !arguments.train) {
    throw UsageError("-r takes the weights of a run to train on with them: it needs -t");
  }
  if (arguments.profile && (!arguments.train || arguments.check)) {
    throw UsageError(
        arguments.check
            ? "--check ends before a training that --profile could measure: give one of them"
            : "--profile shows where the time of a training goes: it needs -t");
  }
}

void check_checkpoint(const Arguments& arguments, const RunSource& source, bool has_one) {
  if (has_one) return;
  if (arguments.retrain) {
    throw UsageError(
        source.project ? fmt::format("-r: {}: the run has no checkpoint to take weights from yet",
                                     source.project->root())
                       : "-r takes the weights of a run: name it with -p, or a checkpoint with -c");
  }
}

void check_without_checkpoint(const RunSource& source, const Config& config) {
  if (!source.project) {
    if (config.has("init_from")) return;
    throw UsageError(
        "nothing to evaluate: give a run with -p, a checkpoint with -c, or weights with "
        "--init_from; -t trains");
  }
  if (own_key<bool>(config, "eval_forever")) return;
  throw UsageError(
      fmt::format("{}: the run has no checkpoint to evaluate yet; --eval_forever true waits for "
                  "those to come",
                  source.project->root()));
}

void check_session(const Arguments& arguments, const RunSource& source, const Session& session) {
  check_evaluation(arguments, source, session.settings());
  check_utf8(session.config_yaml());
  if (!arguments.train && session.settings().evaluations.empty()) {
    throw UsageError("nothing to evaluate: the config has no datasets/validation");
  }
}

}  // namespace stepop
