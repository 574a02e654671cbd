#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/resolve.h"
#include "runtime/core/log/console.h"
#include "runtime/tools/cli/flags.h"
#include "runtime/train/checkpoint/progress.h"

namespace stepop {

struct CommandInfo;

/// The contents of the command line, except for the flags that only one command takes.
struct Arguments {
  const CommandInfo* command = nullptr;   ///< Given by the first word; null: train or evaluate.
  std::vector<std::string> operands;      ///< A command's words that are no flags: its folders.
  bool help = false;                      ///< -h, or no words at all
  bool version = false;                   ///< --version
  std::optional<std::string> name;        ///< -n
  std::vector<std::string> base;          ///< -b
  bool train = false;                     ///< -t
  std::optional<std::string> project;     ///< -p
  std::optional<std::string> checkpoint;  ///< -c
  bool retrain = false;                   ///< -r
  bool resume = false;                    ///< --resume
  std::string logs = "logs";              ///< --logs
  LogLevel log_level = LogLevel::kInfo;   ///< -l
  bool debug = false;                     ///< -d
  bool check = false;                     ///< --check
  bool graph = false;                     ///< --graph
  bool json = false;                      ///< --json
  bool profile = false;                   ///< --profile
  std::optional<std::string> processes;   ///< --processes
  std::optional<std::string> tuned;       ///< --tuned
  bool current_code = false;              ///< --current-code
  bool allow_unknown = false;             ///< --allow-unknown
  bool wandb_sweep = false;               ///< -w: `--a.b=3` is `--a/b 3`
  bool predicts = false;                  ///< `stepop predict`
  bool takes_change = false;              ///< For a live change, whose file is the last of `base`.
  std::optional<Rewind> rewind;           ///< For a training that goes back to a checkpoint.
  std::vector<Override> overrides;        ///< --path/key value
  /// The path and words of each, as typed, so that users can paste them: `lr`, `--lr 0.1`.
  std::vector<std::pair<std::string, std::string>> typed_overrides;
  std::string command_line;  ///< All words, quoted for a shell.
};

/// The flags of a start; they write their values to `arguments`, which must outlive them.
Flags common_flags(Arguments& arguments);

}  // namespace stepop
