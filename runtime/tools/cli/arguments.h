#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/resolve.h"
#include "runtime/core/log/console.h"
#include "runtime/tools/cli/flags.h"

namespace stepop {

struct CommandInfo;

/// What the command line asks for, but for the flags that one command alone takes.
struct Arguments {
  const CommandInfo* command = nullptr;   ///< Named by the first word; none: train or evaluate.
  std::vector<std::string> operands;      ///< Words of a command that are no flags: its folders.
  bool help = false;                      ///< -h, or no word at all
  bool version = false;                   ///< --version
  std::optional<std::string> name;        ///< -n
  std::vector<std::string> base;          ///< -b
  bool train = false;                     ///< -t
  std::optional<std::string> project;     ///< -p
  std::optional<std::string> checkpoint;  ///< -c
  bool retrain = false;                   ///< -r
  std::string logs = "logs";              ///< --logs
  LogLevel log_level = LogLevel::kInfo;   ///< -l
  bool debug = false;                     ///< -d
  bool check = false;                     ///< --check
  bool graph = false;                     ///< --graph
  bool profile = false;                   ///< --profile
  std::optional<std::string> processes;   ///< --processes
  std::optional<std::string> tuned;       ///< --tuned
  bool current_code = false;              ///< --current-code
  bool allow_unknown = false;             ///< --allow-unknown
  bool predicts = false;                  ///< `stepop predict`
  bool takes_change = false;              ///< Of a live change: its file is the last of `base`.
  std::vector<Override> overrides;        ///< --path/key value
  /// Path and words of each, as they were typed, to be pasted: `lr`, `--lr 0.1`.
  std::vector<std::pair<std::string, std::string>> typed_overrides;
  std::string command_line;  ///< All words, quoted as a shell needs them.
};

/// The flags of a start, with their values going to `arguments`, which must outlive them.
Flags common_flags(Arguments& arguments);

}  // namespace stepop
