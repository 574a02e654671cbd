#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/tools/cli/arguments.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// What the first word of a command line names: `stepop checkpoints logs/...`.
struct Command {
  const char* name;
  const char* operands;  ///< The words that it takes, for help and messages: `logs/<time>_<name>`.
  size_t fewest;         ///< Words that it needs.
  size_t most;           ///< Words that it takes.
  const char* about;     ///< For help, one line.
  int (*run)(const Arguments&);  ///< Returns the exit code.

  /// `stepop checkpoints logs/<time>_<name>`
  std::string usage() const;
};

/// All of them, in the order of the help.
std::span<const Command> commands();
/// The command of that name, or null.
const Command* find_command(std::string_view name);

/// Trains or evaluates, as the arguments say. Returns the exit code: 0; 3 when a callback of an
/// evaluation failed; 128 + the signal's number after a signal. Throws Error for anything else.
int run_command(const Arguments& arguments);

/// What run_command and eval_command return when a callback failed.
inline constexpr int kCallbackFailed = 3;

/// Prints the resolved config as YAML.
int config_command(const Arguments& arguments);

/// Prints every registered component, or those of a word, with its parameters.
int list_command(const Arguments& arguments);

/// Reads the examples of the config's datasets and prints what they are like: types, shapes,
/// ranges, statistics, the time of an example, bad examples; on request a picture and a page of
/// them. Returns 1 when some are bad.
int data_command(const Arguments& arguments);

/// Writes the examples of a dataset as a folder with a meta.yaml, which Meta reads. Throws Error
/// for a folder that is there, and changes nothing then.
int meta_command(const Arguments& arguments);

/// Writes a folder with a model, a dataset and an iterator to begin with, and their config. Throws
/// UsageError for a folder that is there, and changes nothing then.
int new_command(const Arguments& arguments);

/// Precompiles the headers for user code, where this build or installation lies.
int prepare_command(const Arguments& arguments);

/// Prints a script that completes the words of a command line, for bash or zsh.
int completion_command(const Arguments& arguments);

/// Prints the help.
int help_command(const Arguments& arguments);

/// Reads every checkpoint of a run and prints a table of them: step, epoch, size, the config's
/// metric, age, and which is the latest, the best, damaged. Throws UsageError for a folder that is
/// no run's.
int checkpoints_command(const Arguments& arguments);

/// Runs callbacks over the outputs of an evaluation that is over, prints their scalars and adds
/// them to its scalars.json. Returns 0, or kCallbackFailed when one failed: the others still ran.
int eval_command(const Arguments& arguments);

/// Runs the network of a run over data without labels, as an evaluation with a name of its own.
/// Returns as run_command.
int predict_command(const Arguments& arguments);

/// Writes a network of a run as TorchScript or ONNX, checked on examples of the run's data. Returns
/// 0; throws Error, and writes nothing, when the file would compute something else.
int export_command(const Arguments& arguments);

/// Prints a table of the runs in a folder (default: logs), the newest first. Throws UsageError for
/// a folder that is not there.
int runs_command(const Arguments& arguments);

/// Runs a sweep, or goes on with it, and prints its table. Returns 0; 1 when a run failed; 3 when a
/// callback of one did; 128 + the signal's number after a signal.
int sweep_command(const Arguments& arguments);

/// Measures the steps of a training with other settings, and writes the fastest; with --batch_size
/// its speed and memory by batch size, with --lr its loss by learning rate. The training itself,
/// its state and its files are left alone. Returns 0; throws Error when the config as it is cannot
/// train.
int tune_command(const Arguments& arguments);

/// Prints what is in a file of evaluation outputs or a safetensors file: where it comes from, and a
/// table of its arrays. Throws Error for a file that is neither, is cut short or of a newer format.
int inspect_command(const Arguments& arguments);

/// Prints where the configs of two runs or more differ, and a table of their scalars: the last and
/// the best value of each.
int compare_command(const Arguments& arguments);

/// Writes one HTML file about a run, `RUN/report.html` unless another is named.
int report_command(const Arguments& arguments);

/// Prints a script for bash that makes a run again, with what cannot be had or differs now.
int reproduce_command(const Arguments& arguments);

/// Throws UsageError for -b and --path/key, which a command without a config has no use for.
/// `takes` is what it takes: `the folder of a run`.
void refuse_config(const Arguments& arguments, const std::string& takes);

/// The run in the folder that was given to a command; throws UsageError when it is none.
RunDirectory open_run(const Arguments& arguments, const std::string& root);

}  // namespace stepop
