#include "runtime/tools/cli/help.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5.h"
#include "runtime/tools/cli/commands.h"

namespace stepop {

const std::vector<Flag>& flags() {
  using enum Flag::Takes;
  static const std::vector<Flag> all = {
      {'n', "name", kValue,
       "name of a new run: the end of its folder's name; with -p and without -t, of an evaluation"},
      {'n', "name", kValue, "only runs whose name has this in it", "runs"},
      {'b', "base", kValues, "YAML files; each one overrides the ones before it"},
      {'t', "train", kOptionalBool, "train; without it the run is evaluated"},
      {'p', "project", kValue, "the folder of a run: resume it (with -t) or evaluate it"},
      {'c', "checkpoint", kValue,
       "use this checkpoint: a step, latest, best or a path (default: the latest)"},
      {'c', "callback", kEach, "a callback, name:callback or ./script.py; repeat for more", "eval"},
      {'r', "retrain", kOptionalBool, "with -t: take only the weights, start a new run at step 0"},
      {'l', "log_level", kValue, "debug, info (default), warn or critical"},
      {0, "logs", kValue, "the folder of new runs (default: logs)"},
      {'d', "debug", kOptionalBool, "a run of 10 steps in logs/debug_runs/"},
      {0, "current-code", kOptionalBool,
       "with -p: use the sources as they are now, not the run's own copy"},
      {0, "check", kOptionalBool,
       "run every op on one batch and show time, memory and shapes; writes nothing"},
      {0, "graph", kOptionalBool,
       "with --check: what each network computes, operation by operation"},
      {0, "processes", kValue, "so many processes of this machine share the work"},
      {0, "tuned", kValue, "auto: a training with the settings that `stepop tune` found for it"},
      {0, "profile", kOptionalBool, "show where the time went when a training ends"},
      {0, "allow-unknown", kOptionalBool, "unknown config keys are a warning, not an error"},
      {0, "template", kValue,
       "classifier (default), regression, table, autoencoder, gan, loss_model or language_model",
       "new"},
      {0, "from-edflow", kValues, "the configs of an edflow project, which are translated", "new"},
      {0, "from-dlas", kValue, "the config of a DL-Art-School training, which is translated",
       "new"},
      {0, "project", kNothing, "a CMake project with src/, configs/ and tests/", "new"},
      {0, "keys", kNothing,
       "each key of the config and of its components: type, value or (default), meaning", "config"},
      {0, "paths", kNothing, "only the paths of its keys; its code is neither compiled nor loaded",
       "config"},
      {0, "json", kNothing, "all values as a JSON list, for programs", "runs"},
      {0, "json", kNothing, "the problems and the lines as JSON, for programs", "reproduce"},
      {0, "csv", kNothing, "all values as CSV", "runs"},
      {0, "best", kValue, "show and sort by this number, whichever it is: the best run first",
       "runs"},
      {0, "state", kValue, "only those: running, ended, stopped, failed, killed or unknown",
       "runs"},
      {0, "where", kEach,
       "only those whose config fits: optimizer/lr=1e-3; also !=, <, <=, >, >=; repeat for more",
       "runs"},
      {0, "show", kValues, "columns for keys of the config: --show optimizer/lr seed", "runs"},
      {0, "sort", kValue, "by name (default), state, step, last, best or age", "runs"},
      {0, "jobs", kValue, "how many runs at a time (default: the file's, else 1)", "sweep"},
      {0, "table", kNothing, "only print the table of what there is; starts nothing", "sweep"},
      {0, "json", kNothing, "the table and all runs as JSON; progress goes to standard error",
       "sweep"},
      {0, "csv", kNothing, "the table as CSV; progress goes to standard error", "sweep"},
      {'o', "output", kValue, "the file to write: NAME.pt for TorchScript, NAME.onnx", "export"},
      {0, "network", kValue, "which one, of a run with several networks", "export"},
      {0, "clean", kNothing, "remove all that is kept: compiled code, headers, tokens, settings",
       "prepare"},
      {'o', "output", kValue, "a picture of examples: NAME.png", "data"},
      {0, "html", kValue, "a page to browse examples and statistics: NAME.html", "data"},
      {0, "examples", kValue,
       "how many to read, evenly spread, or all (default: all, of more than 10 million a million)",
       "data"},
      {0, "time", kValue, "how long it may take: 2m (default: a minute, longer for slow steps)",
       "tune"},
      {0, "precision", kUnlessValue, "also try bfloat16, which changes results", "tune"},
      {0, "batch_size", kUnlessValue,
       "speed and memory by batch size instead, as a table and a picture", "tune"},
      {0, "lr", kUnlessValue, "a test of learning rates instead, as a picture, and a suggestion",
       "tune"},
      {'o', "output", kValue, "the file to write (default: tuned.yaml, batch_size.png or lr.png)",
       "tune"},
      {'h', "help", kNothing, "this text; after a command, the help of that command"},
      {0, "version", kNothing, "the versions of stepop and its libraries"},
  };
  return all;
}

namespace {

std::string flag_text(const Flag& flag) {
  using enum Flag::Takes;
  const std::string names = flag.letter == 0 ? fmt::format("    --{}", flag.name)
                                             : fmt::format("-{}, --{}", flag.letter, flag.name);
  const char* value = flag.takes == kValues                         ? " X..."
                      : flag.takes == kValue || flag.takes == kEach ? " X"
                                                                    : "";
  return fmt::format("  {:<24}", names + value);
}

}  // namespace

std::string help_text(const Command& command) {
  std::string text = fmt::format("{}\n  {}\n", command.usage(), command.about);
  for (const auto& flag : flags()) {
    if (flag.command == command.name) text += flag_text(flag) + flag.about + "\n";
  }
  return text + "\n`stepop --help` explains everything else.\n";
}

std::string help_text() {
  std::string text = R"(stepop trains, logs and evaluates models on LibTorch.

  stepop -n NAME -b base1.yaml base2.yaml -t [--path/key value ...]
  stepop -p logs/<time>_<name> [-t] [--path/key value ...]

Commands
)";
  for (const auto& command : commands()) {
    text += fmt::format("  {}\n      {}\n", command.usage(), command.about);
  }
  text += "\nFlags\n";
  for (const auto& flag : flags()) {
    const std::string only = flag.command.empty() ? "" : fmt::format("stepop {}: ", flag.command);
    text += flag_text(flag) + only + flag.about + "\n";
  }
  return text + R"(
Any config key can be set on the command line: --optimizer/lr 3e-3, --model/hidden '[64, 32]',
--datasets/train/path=data; --log_ops/+ validation/sample_op appends to a list. Values are YAML:
true, null, 1e-3, -3, [1, 2], {a: 1}; anything else is text. A relative path on the command line is
relative to the current folder, in a config file to the folder of that file.

A signal (INT, TERM, USR1, HUP) or --max_time 3h50m ends a training after the current step and saves
it. `stepop -p RUN -t` resumes it from the newest intact checkpoint; the result is bit-identical to
a run that was never stopped.

Exit status: 0 success; 1 an error in the run; 2 a mistake in the config or on the command line; 3
the run is complete, but a callback failed, or --check found that steps cannot be repeated; 128 + n
ended by signal n.

Examples
  stepop data -b configs/digits.yaml train                       what the examples are like
  stepop -n digits -b configs/digits.yaml -t                     train
  stepop -n small -b configs/digits.yaml configs/small.yaml -t   the second file overrides
  stepop -n fast -b configs/digits.yaml -t --optimizer/lr 3e-3 --num_epochs 2
  stepop -p logs/2026-11-21T10-00-00_digits                      evaluate its latest checkpoint
  stepop -p logs/2026-11-21T10-00-00_digits -c 230               evaluate that of step 230
  stepop predict logs/2026-11-21T10-00-00_digits -b photos.yaml  what it makes of new data
  stepop export logs/2026-11-21T10-00-00_digits -c best -o net.pt   its network, for Python and C++
  stepop -p logs/2026-11-21T10-00-00_digits -t                   resume after a stop or a kill
  stepop -p logs/2026-11-21T10-00-00_digits -t --num_epochs 40   resume, and train for longer
  stepop checkpoints logs/2026-11-21T10-00-00_digits             the checkpoints to resume from
  stepop -n tuned -p logs/2026-11-21T10-00-00_digits -r -t       its weights in a new run, from step 0
  stepop reproduce logs/2026-11-21T10-00-00_digits | bash        the same run once more
  stepop -n try -b configs/digits.yaml -t -d                     10 steps, to see whether it runs
  stepop -b configs/digits.yaml -t --check                       time, memory, shapes of each op
  stepop -n slow -b configs/digits.yaml -t --profile             where the time of a step goes
  stepop tune -b configs/digits.yaml                             the fastest threads, oneDNN, ...
  stepop sweep sweep.yaml --jobs 2                               many runs, then their table
  stepop runs --best accuracy --where optimizer/class=Adam       which run is the best
)";
}

std::string version_text() {
  return fmt::format("stepop {}\nLibTorch {}\nHDF5 {}.{}.{}\n", STEPOP_VERSION, TORCH_VERSION,
                     H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
}

int help_command(const Arguments& arguments) {
  const bool is_of_one = arguments.command != nullptr && arguments.command->run != help_command;
  fmt::print("{}", is_of_one ? help_text(*arguments.command) : help_text());
  return 0;
}

}  // namespace stepop
