#pragma once

#include <string>

#include "runtime/tools/start/build_start.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// Writes what the log of a start begins with: what begins, and where everything is. A training
/// that resumes gets its room: what came after its checkpoint moves aside.
void show_opening(const Start& start, const RunDirectory& directory, const std::string& git);

}  // namespace stepop
