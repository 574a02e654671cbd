#include "runtime/tools/cli/help.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5.h"
#include "runtime/tools/cli/arguments.h"

namespace stepop {

namespace {

constexpr size_t kMostColumns = 100;

/// Breaks the lines that are too long, before a `mark`; what is broken off is indented by `indent`
/// columns.
std::string in_lines(const std::string& text, size_t indent, const char* mark = " ") {
  std::string lines;
  std::istringstream given(text);
  for (std::string line; std::getline(given, line);) {
    while (line.size() > kMostColumns) {
      const size_t space = line.rfind(mark, kMostColumns);
      if (space == std::string::npos || space <= indent) break;
      lines += line.substr(0, space) + "\n";
      line = std::string(indent, ' ') + line.substr(space + 1);
    }
    lines += line + "\n";
  }
  return lines;
}

/// What a flag of a start means for a command that takes it.
std::string meaning_of(const Flag& flag, const CommandInfo& command) {
  std::istringstream meanings(command.meanings);
  for (std::string line; std::getline(meanings, line);) {
    if (line.starts_with(flag.name + ":"))
      return line.substr(std::min(line.size(), flag.name.size() + 2));
  }
  if (flag.name == "project") return "the folder of a run; the word alone does";
  if (flag.name == "current-code") return "the sources as they are now, not a run's own copy";
  return flag.about;
}

std::string flag_text(const Flag& flag) {
  using enum Flag::Takes;
  const std::string names = flag.letter == 0 ? fmt::format("    --{}", flag.name)
                                             : fmt::format("-{}, --{}", flag.letter, flag.name);
  const char* value = flag.takes == kValues                         ? " X..."
                      : flag.takes == kValue || flag.takes == kEach ? " X"
                                                                    : "";
  return in_lines(fmt::format("  {:<24}{}", names + value, flag.about), 26);
}

const char* title_of(CommandGroup group) {
  switch (group) {
    case CommandGroup::kBegin:
      return "Before a training";
    case CommandGroup::kOneRun:
      return "With a run";
    case CommandGroup::kManyRuns:
      return "With many runs";
    case CommandGroup::kShell:
      return "Besides";
  }
  return "";
}

std::string command_list() {
  std::string text;
  std::optional<CommandGroup> group;
  for (const CommandInfo* command : commands()) {
    if (group != command->group) text += fmt::format("\n{}\n", title_of(command->group));
    group = command->group;
    text += in_lines(fmt::format("  {:<13}{}", command->name, command->about), 15);
  }
  return text;
}

}  // namespace

std::vector<Flag> own_flags(const CommandInfo& command) {
  Flags flags;
  make_command(command)->add_flags(flags);
  std::vector<Flag> all = flags.all();
  for (auto& flag : all) flag.set = nullptr;  // the targets of the values no longer exist
  return all;
}

std::string help_text(const CommandInfo& command) {
  std::string text =
      in_lines(command.usage(), 4, " [") + in_lines("  " + std::string(command.about), 2);
  std::string flags;
  const std::vector<Flag> own = own_flags(command);
  for (const auto& flag : own) flags += flag_text(flag);
  Arguments unused;
  const Flags common = common_flags(unused);
  for (const auto& flag : common.all()) {
    const bool is_hidden =
        std::ranges::any_of(own, [&](const Flag& other) { return other.name == flag.name; });
    const bool is_of_all = flag.name == "version";
    if (is_hidden || is_of_all || !command.takes_flag(flag.name)) continue;
    Flag here = flag;
    here.about = meaning_of(flag, command);
    if (!here.about.empty()) flags += flag_text(here);
  }
  text += "\n" + flags;
  if (command.takes_flag("base")) text += "      --path/key X        sets a key of the config\n";
  std::istringstream lines(command.example);
  text += "\n";
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text;
}

std::string help_text() {
  std::string text = R"(stepop trains, logs and evaluates models on LibTorch.

  stepop -n NAME -b base1.yaml base2.yaml -t [--path/key value ...]
  stepop -p logs/<time>_<name> [-t] [--path/key value ...]
  stepop COMMAND ...                                     `stepop COMMAND -h` explains it
)";
  text += command_list() + "\nFlags of a training or an evaluation\n";
  Arguments unused;
  const Flags common = common_flags(unused);
  for (const auto& flag : common.all()) text += flag_text(flag);
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
  stepop -n tuned -p logs/2026-11-21T10-00-00_digits -r -t       its weights in a new run
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

}  // namespace stepop
