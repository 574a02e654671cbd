#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/resolve.h"
#include "runtime/core/log/console.h"

namespace stepop {

struct Command;

/// What the command line asks for.
struct Arguments {
  const Command* command = nullptr;         ///< Named by the first word; none: train or evaluate.
  std::vector<std::string> operands;        ///< Words of a command that are no flags: its folders.
  bool help = false;                        ///< -h, or no word at all
  bool version = false;                     ///< --version
  std::optional<std::string> name;          ///< -n; of `stepop runs`: a part of names
  std::vector<std::string> base;            ///< -b
  bool train = false;                       ///< -t
  std::optional<std::string> project;       ///< -p
  std::optional<std::string> checkpoint;    ///< -c
  std::vector<std::string> callbacks;       ///< -c of `stepop eval`, each
  bool retrain = false;                     ///< -r
  std::string logs = "logs";                ///< --logs
  LogLevel log_level = LogLevel::kInfo;     ///< -l
  bool debug = false;                       ///< -d
  bool check = false;                       ///< --check
  bool graph = false;                       ///< --graph
  bool profile = false;                     ///< --profile
  std::optional<std::string> new_template;  ///< --template of `stepop new`
  bool new_project = false;                 ///< --project of `stepop new`
  std::vector<std::string> from_edflow;     ///< --from-edflow of it
  std::optional<std::string> from_dlas;     ///< --from-dlas of it
  bool keys = false;                        ///< --keys of `stepop config`
  bool paths = false;                       ///< --paths of it
  bool json = false;                        ///< --json of a command with a table
  bool csv = false;                         ///< --csv
  std::optional<std::string> sort;          ///< --sort
  std::optional<std::string> best;          ///< --best
  std::optional<std::string> state;         ///< --state
  std::vector<std::string> where;           ///< --where, each
  std::vector<std::string> show;            ///< --show
  std::optional<std::string> jobs;          ///< --jobs of `stepop sweep`
  std::optional<std::string> output;        ///< -o of `stepop export` and `stepop data`
  std::optional<std::string> html;          ///< --html of `stepop data`
  std::optional<std::string> examples;      ///< --examples of it
  std::optional<std::string> network;       ///< --network of it
  std::optional<std::string> processes;     ///< --processes
  bool table = false;                       ///< --table of it
  std::optional<std::string> tuned;         ///< --tuned
  std::optional<std::string> time_limit;    ///< --time of `stepop tune`
  bool tunes_precision = false;             ///< --precision of it
  bool tunes_batch_size = false;            ///< --batch_size of it, without a value
  bool tunes_lr = false;                    ///< --lr of it
  bool current_code = false;                ///< --current-code
  bool allow_unknown = false;               ///< --allow-unknown
  bool predicts = false;                    ///< `stepop predict`
  bool takes_change = false;                ///< Of a live change: its file is the last of `base`.
  bool clean = false;                       ///< --clean of `stepop prepare`
  std::vector<Override> overrides;          ///< --path/key value
  /// Path and words of each, as they were typed, to be pasted: `lr`, `--lr 0.1`.
  std::vector<std::pair<std::string, std::string>> typed_overrides;
  std::string command_line;  ///< All words, quoted as a shell needs them.
};

}  // namespace stepop
