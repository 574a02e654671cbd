#pragma once

#include <string>

#include "runtime/tools/tune/tune_steps.h"

namespace stepop {

/// What was found, as YAML to be laid over the config (`-b config.yaml tuned.yaml`); comments say
/// on what it was measured. `config` is how the config was named.
std::string tuned_text(const TunedSteps& tuned, const std::string& config);

}  // namespace stepop
