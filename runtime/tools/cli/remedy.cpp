#include "runtime/tools/cli/remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "runtime/core/base/shell_text.h"
#include "runtime/train/checkpoint/checkpoint.h"

namespace stepop {
namespace {

std::string remedy(const RunDirectory& directory, bool has_own_code, const char* saved,
                   const char* what) {
  return fmt::format("{}; once the cause is fixed, {} with:  {}{}", saved, what,
                     resume_command(directory.root()),
                     has_own_code ? "\nif you fixed it in your own code, add --current-code: "
                                    "without it the run uses its own copy of that"
                                  : "");
}

}  // namespace

std::string remedy_after_crash(const RunDirectory& directory, bool has_own_code) {
  return remedy(directory, has_own_code, "what was saved is whole", "resume");
}

std::string remedy_after_error(const RunDirectory& directory, bool has_own_code) {
  std::error_code failed;
  if (!std::filesystem::is_directory(directory.root(), failed)) {
    return fmt::format(
        "the folder of the run, {}, is gone; if it was moved, what was saved is in it: resume with "
        " stepop -p ITS_NEW_PLACE -t",
        directory.root());
  }
  if (!checkpoint_steps(directory.checkpoints()).empty()) {
    return remedy_after_crash(directory, has_own_code);
  }
  return remedy(directory, has_own_code, "nothing was saved yet", "start again");
}

std::string run_near(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const auto is_run = [&](const fs::path& folder) {
    return fs::is_directory(folder / "configs", failed) &&
           !time_in(folder.filename().string()).empty();
  };
  std::string found;
  for (fs::path above = fs::path(path); above.has_parent_path() && above != above.parent_path();) {
    above = above.parent_path();
    if (found.empty() && fs::exists(path, failed) && is_run(above)) found = above.string();
  }
  for (const auto& entry : fs::directory_iterator(path, failed)) {
    // The folders' names begin with their times.
    if (is_run(entry.path())) found = std::max(found, entry.path().string());
  }
  return found.empty() ? "" : fmt::format("; did you mean {}?", found);
}

}  // namespace stepop
