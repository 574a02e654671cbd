#pragma once

#include "runtime/tools/cli/arguments.h"

namespace stepop {

/// Trains or evaluates, depending on the arguments. Returns the exit code: 0; 3 when a callback of
/// an evaluation failed; 128 + the signal's number after a signal. Throws Error for other failures.
int run_command(const Arguments& arguments);

}  // namespace stepop
