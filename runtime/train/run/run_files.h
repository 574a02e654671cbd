#pragma once

#include <span>
#include <string_view>

namespace stepop {

/// A file, or the files of a folder, that a run may have.
struct RunFile {
  /// From the run's folder on; `<time>` stands for a part of a name, a slash at the end for all
  /// files below.
  std::string_view path;
  std::string_view about;
  std::string_view at_resume;  ///< What a start that resumes the run does with it.
};

/// All that stepop writes into a run's folder; README.md shows them. What a new file of a run is
/// stands here; drop_logs_after_step.h and the readers of a run's pictures go by it.
std::span<const RunFile> run_files();

/// Whether `train/<folder>` has what the ops of a split logged: no other row is about that folder.
bool is_folder_of_split(std::string_view folder);

}  // namespace stepop
