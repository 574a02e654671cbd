#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"

namespace stepop {

/// The state of a git working tree at a start.
struct GitTree {
  std::string folder = {};  ///< The tree's top folder.
  std::string commit = {};  ///< The full hash; empty before the first commit.
  std::string branch = {};
  bool is_changed = false;  ///< Tracked files differ from the commit.
  std::string patch = {};   ///< The name of the file in configs/ with these changes, or empty.
  int64_t patch_bytes = 0;
  std::string patch_checksum = {};
  std::vector<std::string> untracked = {};  ///< Files and folders, at most `kMostUntracked`.
  int64_t more_untracked = 0;
  std::string failure = {};  ///< Why something is missing here: `the patch has more than 10.0 MB`.

  bool operator==(const GitTree&) const = default;
};

inline constexpr size_t kMostUntracked = 100;
inline constexpr int64_t kMostPatchBytes = 10'000'000;

/// The top of the working tree around `folder`: the nearest folder with `.git`. Runs no program.
std::optional<std::string> git_top(const std::string& folder);

/// Reads the working tree with the top folder `top`, and writes its difference from the commit to
/// `patch_path`, for `git apply`. `own` is a folder that does not count as untracked. `failure` in
/// the result says what could not be read; exceptions of `interrupt` are passed on.
GitTree read_git_tree(const std::string& top, const std::string& patch_path, const std::string& own,
                      const InterruptCheck& interrupt = {},
                      int64_t most_patch_bytes = kMostPatchBytes);

/// Whether the repository of that working tree has this commit.
bool has_commit(const std::string& top, const std::string& commit);

}  // namespace stepop
