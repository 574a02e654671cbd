#pragma once

#include <optional>
#include <string>

#include "runtime/core/config/config.h"

namespace stepop {

/// A component writes the values that it fits on the training data, such as a mean, into its own
/// part of the config, as defaults. So the run's saved config has the values, and a resume, an
/// evaluation or `stepop predict` uses them and needs no training data. A component of another
/// split finds the values through its parameter `fit`, the name of the split.

/// The first part with class `name` in the dataset of `split`, from the outside in; it may be the
/// dataset itself. Empty when there is no such split or part.
std::optional<Config> find_part(const Config& config, const std::string& split,
                                const std::string& name);

/// The part to which the parameter `fit` of `params`, a component of class `name`, refers. Throws
/// UsageError when the split has no such part, when that part fits on another split itself, or when
/// it is the same part.
Config part_to_fit(const Config& params, const std::string& name);

}  // namespace stepop
