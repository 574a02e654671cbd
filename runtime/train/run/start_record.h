#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/train/run/data_files.h"
#include "runtime/train/run/git_tree.h"

namespace stepop {

/// The record of one start of a run besides its config, `configs/<mode>_<time>.json`: everything
/// needed to repeat the start.
struct StartRecord {
  /// `new`, `weights` (-r), `resume`, `change` (of the config in mid-run) or `evaluation`.
  std::string kind = {};
  std::string time = {};     ///< The time of the start, as in names.
  std::string command = {};  ///< The command line, quoted for a shell.
  std::string folder = {};   ///< The current folder.
  std::string program = {};  ///< The program's path.
  std::string build = {};    ///< As in provenance's stepop_time.
  std::string host = {};
  bool is_debug = false;        ///< -d
  bool allows_unknown = false;  ///< --allow-unknown
  int64_t processes = 1;        ///< That trained or evaluated together.
  std::string launcher = {};    ///< `--processes`, torchrun; empty for a single process.
  /// The path and version of the compiler of the user's own code; empty without such code.
  std::string code_compiler = {};
  int64_t step = 0;  ///< The step at which the start begins.
  /// The checkpoint from which the start begins, relative to the run if it is the run's own; empty
  /// for none.
  std::string checkpoint = {};
  std::string checkpoint_checksum = {};
  std::string made_by = {};  ///< As in provenance's build_info.
  OrderedMap<std::string> libraries = {};
  OrderedMap<std::string> machine = {};
  OrderedMap<std::string> environment = {};
  std::vector<std::string> hidden = {};  ///< Variables that are set, but whose values are not kept.
  /// Variables that the config read by `{env:NAME}`; nothing for a variable that was not set.
  OrderedMap<std::optional<std::string>> config_variables = {};
  /// The configs given by -b, absolute; empty where the run's own config was taken.
  std::vector<std::string> configs = {};
  /// Checksums of these and of what they include, by absolute paths.
  OrderedMap<std::string> config_files = {};

  // Collected while the training already runs.
  std::vector<GitTree> git = {};    ///< Around the current folder, and around the user's own code.
  std::string data_checksums = {};  ///< `size`, `content` or `none`.
  OrderedMap<DataFile> data = {};   ///< By the path of the key that names it.
  std::vector<std::string> failures = {};  ///< What could not be collected.
  bool is_whole = false;                   ///< False after a kill in the first moments of a start.

  std::string to_json() const;
  /// Nothing when `text` was not written by `to_json`.
  static std::optional<StartRecord> from_json(const std::string& text);
};

/// A sentence for each difference between the start and this program on this machine, besides git
/// and data: libraries, threads, instructions, the processor.
std::vector<std::string> changes_since(const StartRecord& start, const std::string& made_by_now);

}  // namespace stepop
