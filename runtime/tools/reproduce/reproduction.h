#pragma once

#include <string>
#include <vector>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// The commands that repeat a run.
struct Reproduction {
  /// A start, or the preparation for all starts, as lines for a shell, including comments.
  struct Part {
    std::string time = {};  ///< The start's time; empty for the preparation.
    std::vector<std::string> lines = {};
  };

  std::string run;                    ///< The run's folder.
  std::vector<std::string> problems;  ///< Missing or changed things, one sentence for each.
  std::vector<Part> parts;

  /// All commands as a script for bash.
  std::string script() const;
};

/// Compares the records of a run's starts with the current files and machine. Leaves out starts
/// whose steps were repeated by other starts, and resumed starts with the same config: the bits of
/// one training are the same.
Reproduction plan_reproduction(const RunDirectory& run);

}  // namespace stepop
