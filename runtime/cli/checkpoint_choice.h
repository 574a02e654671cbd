#pragma once

#include <optional>
#include <string>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/cli/run_source.h"

namespace stepop {

/// A checkpoint that a start begins from. It is read when it is chosen: a training beside us may
/// remove it a moment later.
struct ChosenCheckpoint {
  std::string path;
  Checkpoint checkpoint;
};

/// The checkpoint that `-c` picks, else the newest one of `-p` that is not damaged; none for a
/// fresh run. Throws Error for one that is damaged, UsageError for one that is not there.
std::optional<ChosenCheckpoint> choose_checkpoint(const Arguments& arguments,
                                                  const RunSource& source, Console& console);

}  // namespace stepop
