#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/callbacks/stored_config.h"
#include "eval_out/read/find_evaluations.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/config/config_files.h"
#include "runtime/core/config/merge.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/log/facts.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/exit_codes.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/train/loop/evaluation.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/signals.h"
#include "runtime/train/when/evaluation_settings.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

struct EvalFlags {
  std::vector<std::string> callbacks;

  void add_to(Flags& flags) {
    flags.add({'c', "callback"}, callbacks,
              "a callback, name:callback or ./script.py; repeat for more");
  }
};

template <class T>
T attribute(const EvalFile& file, const char* name, T fallback) {
  const Attribute* found = file.attributes().find(name);
  return found != nullptr && std::holds_alternative<T>(*found) ? std::get<T>(*found) : fallback;
}

/// Describes the file in one line.
void print_head(const EvalFile& file, const std::string& split) {
  fmt::print("{}: {} of {}", file.path(), counted(file.rows(), "row"), split);
  const auto step = attribute<int64_t>(file, "global_step", -1);
  if (step >= 0) fmt::print(" at step {}", with_thousands(step));
  fmt::print("{}\n", file.complete() ? "" : ", of an unfinished evaluation");
  std::fflush(stdout);
}

void print_scalars(const OrderedMap<double>& scalars) {
  size_t width = 0;
  for (const auto& [name, value] : scalars) width = std::max(width, name.size());
  for (const auto& [name, value] : scalars) {
    fmt::print("{:<{}}  {}\n", name, width, short_number(value));
  }
}

/// The run of a file RUN/eval/<time>_<name>/<step>/outputs.h5, and the config of the start that
/// evaluated it.
struct FileRun {
  std::string root;
  Value config;
};

/// Nothing for a file outside a run, or in a run without the config of that start.
std::optional<FileRun> run_of(const EvalFile& file) {
  fs::path start = fs::absolute(file.path()).lexically_normal().parent_path().parent_path();
  // The file of an evaluation with a name is one folder deeper.
  if (start.parent_path().filename() != "eval") start = start.parent_path();
  const fs::path root = start.parent_path().parent_path();
  const std::string time = time_in(start.filename().string());
  if (start.parent_path().filename() != "eval" || time.empty()) return std::nullopt;
  const RunDirectory run = RunDirectory::at(root.string());
  for (const char* mode : {"eval", "train"}) {
    const std::string config = run.config_file(mode, time);
    if (fs::is_regular_file(config)) return FileRun{root.string(), resolve_config({config}, {})};
  }
  return std::nullopt;
}

/// Loads the code of the file's run, from the run's own copy unless --current-code is given, and
/// the code of -b and `--code`. Code that only the file names is not loaded: it may be untrusted.
void load_code_of(const EvalFile& file, const std::optional<FileRun>& run,
                  const Arguments& arguments) {
  Value root = Value(Value::Map{});
  for (const char* key : {"code", "code_flags"}) {
    const Value* value = run ? run->config.find(key) : nullptr;
    if (value != nullptr) root.as_map().set(key, *value);
  }
  bool is_given = false;
  for (const auto& path : arguments.base) {
    const Value given = read_config_file(path);
    for (const char* key : {"code", "code_flags"}) {
      const Value* value = given.find(key);
      if (value == nullptr) continue;
      merge(root, Value(Value::Map{{key, *value}}));
      is_given = true;
    }
  }
  std::vector<Override> code;
  for (const auto& given : arguments.overrides) {
    if (given.path.starts_with("code")) code.push_back(given);
  }
  is_given = is_given || !code.empty();
  apply_overrides(root, std::move(code));
  const std::string copy = run && !arguments.current_code ? run->root : "";
  const auto files = load_code(Config(std::move(root)), copy, Optimization::kFull).files;
  const std::string note =
      files.empty() || !run ? "" : code_note(run->root, arguments.current_code);
  if (!note.empty()) fmt::print("{}\n", note);
  const Value stored = read_stored_config(file);
  const Value* named = stored.find("code");
  if (run || is_given || named == nullptr || named->is_null()) return;
  fmt::print(
      stderr,
      "stepop: {} is not in the folder of a run; the code that it names ({}) is not compiled, as "
      "the file may be from anywhere: give the code with --code '[my_code.cpp]'\n",
      shown_text(file.path()), flow_yaml(*named));
}

int eval_command(const Arguments& arguments, const EvalFlags& own) {
  if (arguments.json) begin_facts();
  const SignalGuard signals;
  const at::NoGradGuard no_grad;
  const EvalFile file(find_outputs(arguments.operands.front()), throw_if_signal_arrived);
  // The user's code may define its callbacks, and the datasets and classes of its config.
  const std::optional<FileRun> run = run_of(file);
  load_code_of(file, run, arguments);
  // The evaluation's name in the run's config; empty for eval_hook.
  const std::string name = attribute<std::string>(file, "evaluation", "");
  const std::optional<Value> trusted =
      run ? std::optional(config_of_evaluation(run->config, name)) : std::nullopt;
  const Config config = stored_config(file, own.callbacks, arguments.base, arguments.overrides,
                                      trusted ? &*trusted : nullptr);
  const std::string op = config.get(
      "eval_hook/eval_op", attribute<std::string>(file, "split", "validation") + "/eval_op");
  const std::string split = op.substr(0, op.find('/'));
  const StoredDataset data_in(config, "datasets/" + split);
  const std::string folder = fs::absolute(file.path()).lexically_normal().parent_path().string();

  print_head(file, split);
  say_fact("outputs", file.path());
  const CallbackScalars found = EvaluationCallbacks(config).run(
      name.empty() ? op : name, attribute<int64_t>(file, "global_step", 0), folder, data_in, file);
  print_scalars(found.scalars);
  if (found.scalars.empty() && found.failures.empty()) {
    fmt::print("the callbacks returned no numbers\n");
  }
  for (const auto& [callback, reason] : found.silent) fmt::print("{}\n", shown_text(reason));
  add_scalars_of_evaluation(folder, found.scalars);
  for (const auto& [callback, message] : found.failures) {
    fmt::print(stderr, "stepop: the callback {} failed: {}\n", shown_text(callback),
               shown_text(message));
  }
  return found.failures.empty() ? 0 : kCallbackFailed;
}

STEPOP_REGISTER_COMMAND(
    eval_command, EvalFlags,
    {.name = "eval",
     .group = CommandGroup::kOneRun,
     .operands = "PATH [-c CALLBACK ...] [-b more.yaml] [--CALLBACK/key value ...]",
     .fewest = 1,
     .most = 1,
     .about = "run callbacks on an outputs.h5, an evaluation's folder, or the latest evaluation of "
              "a run",
     .takes = "base project current-code json",
     .example = "stepop eval logs/<time>_digits -c accuracy --accuracy/target class",
     .meanings = "base: YAML files with more callbacks and their parameters"
                 "\nproject: a run, whose latest evaluation is taken; the word alone does"});

}  // namespace

}  // namespace stepop
