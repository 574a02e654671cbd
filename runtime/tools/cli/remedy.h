#pragma once

#include <string>

#include "runtime/train/run/run_directory.h"

namespace stepop {

// The advice for a user after a training has ended early. `has_own_code`: it ran user code, and the
// run has a copy of the code.

/// After an error: how to resume, to start again if nothing was saved, or where to look when the
/// run's folder is gone.
std::string remedy_after_error(const RunDirectory& directory, bool has_own_code);

/// After a crash, when the run's folder still exists.
std::string remedy_after_crash(const RunDirectory& directory, bool has_own_code);

/// For a path that is not a run's folder: `; did you mean logs/<time>_<name>?`, the run that
/// contains the path, or the newest run in it; empty without any.
std::string run_near(const std::string& path);

}  // namespace stepop
