#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tools/start/run_starts.h"
#include "runtime/train/run/start_record.h"

namespace stepop {

/// A sentence for each dependency of a start of the run at `root` that is missing, has changed, or
/// was not recorded: git, data files, checkpoints, the program, the machine, the environment.
std::vector<std::string> what_differs(const std::string& root, const KnownStart& start);

/// A start's number of threads; nothing when it is unknown.
std::optional<int64_t> threads_of(const StartRecord& start);

}  // namespace stepop
