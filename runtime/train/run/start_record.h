#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/train/run/data_files.h"
#include "runtime/train/run/git_tree.h"

namespace stepop {

/// What is recorded of one start of a run beside its config, `configs/<mode>_<time>.json`: all that
/// is needed to make it again. README.md shows a file.
struct StartRecord {
  /// `new`, `weights` (-r), `resume`, `change` (of the config in mid-run) or `evaluation`.
  std::string kind = {};
  std::string time = {};     ///< Of the start, as names have it.
  std::string command = {};  ///< The command line, quoted as a shell needs it.
  std::string folder = {};   ///< The current folder.
  std::string program = {};  ///< The program's path.
  std::string build = {};    ///< As provenance's stepop_time has it.
  std::string host = {};
  bool is_debug = false;        ///< -d
  bool allows_unknown = false;  ///< --allow-unknown
  int64_t processes = 1;        ///< That trained or evaluated together.
  std::string launcher = {};    ///< What started them: `--processes`, torchrun; empty for one.
  int64_t step = 0;             ///< At which it begins.
  /// From which it begins: relative to the run for one of its own; empty for none.
  std::string checkpoint = {};
  std::string checkpoint_checksum = {};
  std::string made_by = {};  ///< As provenance's build_info has it.
  OrderedMap<std::string> libraries = {};
  OrderedMap<std::string> machine = {};
  OrderedMap<std::string> environment = {};
  std::vector<std::string> hidden = {};  ///< Variables that are set, but whose values are not kept.
  /// Variables that the config read by `{env:NAME}`; none for one that was not set.
  OrderedMap<std::optional<std::string>> config_variables = {};

  // Collected while the training runs already.
  std::vector<GitTree> git = {};    ///< Around the current folder, and around the user's own code.
  std::string data_checksums = {};  ///< `size`, `content` or `none`.
  OrderedMap<DataFile> data = {};   ///< By the path of the key that names it.
  std::vector<std::string> failures = {};  ///< What could not be collected.
  bool is_whole = false;                   ///< False after a kill in the first moments of a start.

  std::string to_json() const;
  /// None when `text` is not what `to_json` wrote.
  static std::optional<StartRecord> from_json(const std::string& text);
};

/// A sentence for each thing besides git and data in which this program on this machine, now, is
/// not what the start had: libraries, threads, instructions, the processor.
std::vector<std::string> changes_since(const StartRecord& start, const std::string& made_by_now);

}  // namespace stepop
