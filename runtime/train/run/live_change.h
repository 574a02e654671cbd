#pragma once

#include <chrono>
#include <string>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// A change of the config of a training that is running: a file `train/change.yaml` in the run's
/// folder, which is laid over the config of the start at hand.
class LiveChange {
 public:
  explicit LiveChange(const RunDirectory& directory);

  /// Whether there is one that nobody has written to for a second. Looks at the disk once a second
  /// at most.
  bool is_there(std::chrono::steady_clock::time_point now);

  const std::string& path() const { return path_; }

  /// A start at `time` has taken it: it is kept as `configs/change_<time>.yaml`.
  void take(const std::string& time) const;
  /// It cannot be: it becomes `train/change.yaml.refused`. Returns that path.
  std::string refuse() const;

 private:
  std::string path_;
  std::string configs_;
  std::chrono::steady_clock::time_point next_look_ = {};
};

}  // namespace stepop
