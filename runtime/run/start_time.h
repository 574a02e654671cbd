#pragma once

#include <string>

#include "runtime/run/run_directory.h"

namespace stepop {

/// Takes a time for a start in the run `directory`, which is there, and writes its config,
/// `configs/<mode>_<time>.yaml`; `mode` is `train` or `eval`. What starts make in the run -
/// configs, evaluations, superseded/ - is named by their times, so no two have the same: it is the
/// next second that nobody took, also when several starts look for one at this moment. Of trainings
/// that is one at a time, which has the run's lock. For `eval` the folder `eval/<time>_<name>` is
/// there then. Throws Error when something cannot be written.
std::string take_time(const RunDirectory& directory, const std::string& mode,
                      const std::string& config);

}  // namespace stepop
