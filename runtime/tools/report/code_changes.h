#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// The user code that a run kept for one of its starts, `code/<time>/`.
struct KeptCode {
  std::string time;
  std::map<std::string, std::string> files;  ///< Contents by name in that folder.
};

/// The code of each start that trained with other code than the preceding start, in order; empty
/// for a run whose config names no code. Files that cannot be read are left out.
std::vector<KeptCode> find_kept_code(const RunDirectory& run);

/// The change of one file.
struct FileChange {
  std::string file;
  std::string what;  ///< `2 lines added, 1 removed`, `added`, `removed`
  /// `@ line 12` of the newer file, then the lines there, `-old` and `+new`; cut when they are
  /// many.
  std::vector<std::string> lines = {};
};

/// The changes from `before` to `now`, by file.
std::vector<FileChange> compare_code(const KeptCode& before, const KeptCode& now);

/// The changes in the newest code of runs, compared with the first run, as text; `labels` are the
/// runs' names in the text. Empty when no run keeps code.
std::string describe_code_changes(const std::vector<std::string>& labels,
                                  const std::vector<RunDirectory>& runs);

}  // namespace stepop
