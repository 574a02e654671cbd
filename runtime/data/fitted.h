#pragma once

#include <optional>
#include <string>

#include "runtime/core/config/config.h"

namespace stepop {

/// What a component fits on the training data, such as a mean, it writes into its own part of the
/// config, as a default: so the run's saved config has the numbers, and whatever starts from it -
/// a resume, an evaluation, `stepop predict` - takes them as they are and needs no training data.
/// A component of another split finds them by the name of the split, its parameter `fit`.

/// The first part of the dataset of that split, from the outside in, whose class is `name`; the
/// dataset may be that itself. None when there is no such split or part.
std::optional<Config> find_part(const Config& config, const std::string& split,
                                const std::string& name);

/// The part that the parameter `fit` of `params`, a component of class `name`, stands for. Throws
/// UsageError when that split has none, or fits on another split itself, or when it is this one.
Config part_to_fit(const Config& params, const std::string& name);

}  // namespace stepop
