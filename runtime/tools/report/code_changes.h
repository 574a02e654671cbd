#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// The user's code that a run kept with one of its starts, `code/<time>/`.
struct KeptCode {
  std::string time;
  std::map<std::string, std::string> files;  ///< Contents by their names in that folder.
};

/// That of each start which trained with other code than the start before, in their order; empty
/// for a run whose config names no code. Files that cannot be read are left out.
std::vector<KeptCode> find_kept_code(const RunDirectory& run);

/// How one file differs.
struct FileChange {
  std::string file;
  std::string what;  ///< `2 lines added, 1 removed`, `added`, `removed`
  /// `@ line 12` of the newer file, then the lines there, `-old` and `+new`; cut when they are
  /// many.
  std::vector<std::string> lines = {};
};

/// What `now` has changed of `before`, by file.
std::vector<FileChange> compare_code(const KeptCode& before, const KeptCode& now);

/// How the newest code of runs differs from that of the first one, as text for people; `labels` are
/// what the runs are called there. Empty when none of them keeps code.
std::string describe_code_changes(const std::vector<std::string>& labels,
                                  const std::vector<RunDirectory>& runs);

}  // namespace stepop
