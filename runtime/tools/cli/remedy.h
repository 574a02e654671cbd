#pragma once

#include <string>

#include "runtime/train/run/run_directory.h"

namespace stepop {

// What a person is to type when a training has ended by something other than its end.
// `has_own_code`: it ran code of the user's, of which the run has a copy.

/// After an error: how to resume, to begin again where nothing was saved, or where to look when the
/// folder of the run is gone.
std::string remedy_after_error(const RunDirectory& directory, bool has_own_code);

/// After a crash, which the run's folder outlives.
std::string remedy_after_crash(const RunDirectory& directory, bool has_own_code);

/// For a path that is not the folder of a run: `; did you mean logs/<time>_<name>?`, the run that
/// it lies in, or the newest of those in it; empty for none.
std::string run_near(const std::string& path);

}  // namespace stepop
