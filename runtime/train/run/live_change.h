#pragma once

#include <chrono>
#include <string>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// A change of the config of a running training: the file `train/change.yaml` in the run's folder,
/// or else `change.yaml` in the folder itself, which is merged over the config of the current
/// start.
class LiveChange {
 public:
  explicit LiveChange(const RunDirectory& directory);

  /// Whether a file exists and was not written to for a second. Looks at the disk at most once a
  /// second.
  bool is_there(std::chrono::steady_clock::time_point now);

  /// The file that is there now.
  std::string path() const;

  /// Called by a start at `time` that applied the change `file`: renames it to
  /// `configs/change_<time>.yaml`.
  void take(const std::string& file, const std::string& time) const;
  /// Called when the change `file` is invalid, for `reason`: adds this as a comment, and `.refused`
  /// to its name. Returns the new path.
  static std::string refuse(const std::string& file, const std::string& reason);

 private:
  std::string root_;
  std::string configs_;
  std::chrono::steady_clock::time_point next_look_ = {};
};

}  // namespace stepop
