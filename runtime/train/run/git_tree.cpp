#include "runtime/train/run/git_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/checksum.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds kMostGitTime{60};

/// Git's error message, in one line.
std::string git_message(const ChildResult& result) {
  const std::string first = result.err.substr(0, result.err.find('\n'));
  return first.empty() ? fmt::format("git ended with status {}", result.exit_code)
                       : shortened(first, 300);
}

/// Runs git at `top`, without its lock on the index, for at most a minute.
ChildResult run_git(const std::string& top, std::vector<std::string> words,
                    const InterruptCheck& interrupt) {
  std::vector<std::string> all = {"git", "--no-optional-locks", "-C", top};
  all.insert(all.end(), std::make_move_iterator(words.begin()),
             std::make_move_iterator(words.end()));
  const auto begin = std::chrono::steady_clock::now();
  return run_child(std::move(all), [&] {
    if (interrupt) interrupt();
    if (std::chrono::steady_clock::now() - begin > kMostGitTime) {
      throw Error(fmt::format("git took more than {} s", kMostGitTime.count()));
    }
  });
}

/// Reads the output of `git status --porcelain=v2 --branch -z`.
void read_status(std::string_view text, const std::string& own, GitTree& tree) {
  bool skips = false;  // the old name follows the entry of a renamed file
  while (!text.empty()) {
    const size_t end = std::min(text.find('\0'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (std::exchange(skips, false)) continue;
    const auto value_of = [&](std::string_view key) {
      return line.starts_with(key) ? std::string(line.substr(key.size())) : "";
    };
    if (const std::string commit = value_of("# branch.oid "); !commit.empty()) {
      if (commit != "(initial)") tree.commit = commit;
    } else if (const std::string branch = value_of("# branch.head "); !branch.empty()) {
      tree.branch = branch;
    } else if (const std::string path = value_of("? "); !path.empty()) {
      const bool holds_own = path.ends_with('/') && own.starts_with(tree.folder + "/" + path);
      if (holds_own) continue;
      if (tree.untracked.size() < kMostUntracked) {
        tree.untracked.push_back(path);
      } else {
        ++tree.more_untracked;
      }
    } else if (line.starts_with("1 ") || line.starts_with("2 ") || line.starts_with("u ")) {
      tree.is_changed = true;
      skips = line.starts_with("2 ");
    }
  }
}

void write_patch(GitTree& tree, const std::string& path, const InterruptCheck& interrupt,
                 int64_t most_bytes) {
  const std::string part = path + std::string(AtomicFile::kTemporarySuffix);
  const auto bytes_of_part = [&] {
    std::error_code failed;
    const auto bytes = fs::file_size(part, failed);
    return failed ? int64_t{0} : static_cast<int64_t>(bytes);
  };
  const auto too_large = [&] {
    return Error(
        fmt::format("the patch has more than {}", size_text(static_cast<double>(most_bytes))));
  };
  try {
    // Whatever the user's git settings, the output is a patch for `git apply` at the top.
    const ChildResult result =
        run_git(tree.folder,
                {"-c", "diff.relative=false", "diff", "HEAD", "--binary", "--full-index",
                 "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty",
                 "--src-prefix=a/", "--dst-prefix=b/", "--output=" + part},
                [&] {
                  if (interrupt) interrupt();
                  if (bytes_of_part() > most_bytes) throw too_large();
                });
    if (result.exit_code != 0 || result.signal != 0) throw Error(git_message(result));
    tree.patch_bytes = bytes_of_part();
    if (tree.patch_bytes > most_bytes) throw too_large();
    if (tree.patch_bytes > 0) {
      tree.patch_checksum = file_checksum(part);
      rename_into_place(part, path);
      tree.patch = fs::path(path).filename().string();
      return;
    }
  } catch (const Interrupted&) {
    std::error_code ignored;
    fs::remove(part, ignored);
    throw;
  } catch (const Error& error) {
    tree.failure = error.what();
  }
  std::error_code ignored;
  fs::remove(part, ignored);
}

}  // namespace

std::optional<std::string> git_top(const std::string& folder) {
  std::error_code failed;
  for (fs::path place = fs::weakly_canonical(folder, failed); !failed;
       place = place.parent_path()) {
    if (fs::exists(place / ".git", failed)) return place.string();
    if (place == place.parent_path()) break;
  }
  return std::nullopt;
}

GitTree read_git_tree(const std::string& top, const std::string& patch_path, const std::string& own,
                      const InterruptCheck& interrupt, int64_t most_patch_bytes) {
  GitTree tree{.folder = top};
  try {
    const ChildResult status = run_git(
        top, {"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal"}, interrupt);
    if (status.exit_code != 0 || status.signal != 0) throw Error(git_message(status));
    if (!status.out.starts_with("# ")) {  // only the end of a long output is kept
      throw Error("it has more changed and untracked files than can be listed");
    }
    read_status(status.out, own, tree);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    tree.failure = error.what();
    return tree;
  }
  if (tree.commit.empty()) {
    tree.failure = "it has no commit yet";
  } else if (tree.is_changed) {
    write_patch(tree, patch_path, interrupt, most_patch_bytes);
  }
  return tree;
}

bool has_commit(const std::string& top, const std::string& commit) {
  try {
    return run_git(top, {"cat-file", "-e", commit + "^{commit}"}, {}).exit_code == 0;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace stepop
