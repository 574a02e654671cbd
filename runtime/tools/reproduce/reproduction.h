#pragma once

#include <string>
#include <vector>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// How a run can be made again.
struct Reproduction {
  /// A start, or what comes before all of them, as lines of a shell; comments among them.
  struct Part {
    std::string time = {};  ///< Of the start; empty for the preparation.
    std::vector<std::string> lines = {};
  };

  std::string run;                    ///< Its folder.
  std::vector<std::string> problems;  ///< What cannot be had, or is not as it was: a sentence each.
  std::vector<Part> parts;

  /// All of it as a script for bash.
  std::string script() const;
};

/// Looks at the records of a run's starts and at what is there of it all now. Starts whose steps
/// others made again are left out, and those that went on with the same config: the bits of one
/// training are the same.
Reproduction plan_reproduction(const RunDirectory& run);

}  // namespace stepop
