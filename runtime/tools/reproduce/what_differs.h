#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tools/cli/run_starts.h"
#include "runtime/train/run/start_record.h"

namespace stepop {

/// A sentence for each thing on which a start of the run at `root` depended and that is not there
/// now, is not as it was, or was not recorded: git, data files, checkpoints, the program, the
/// machine, the environment.
std::vector<std::string> what_differs(const std::string& root, const KnownStart& start);

/// The number of threads that a start had; none when it is not known.
std::optional<int64_t> threads_of(const StartRecord& start);

}  // namespace stepop
