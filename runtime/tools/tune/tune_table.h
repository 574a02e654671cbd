#pragma once

#include <string>

#include "runtime/tools/tune/tune_steps.h"

namespace stepop {

/// What was measured: a line for each candidate, the fastest first, and in words what came of it.
std::string tune_table(const TunedSteps& tuned);

}  // namespace stepop
