#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/optim/optimizer.h"

namespace stepop {

/// Texts for a message, the first ten of them: `a, b, c and 5 more`.
std::string list_some(const std::vector<std::string>& texts, std::string_view separator = ", ");

/// The names of parameters for a message.
std::string list_names(const NamedParameters& parameters);

}  // namespace stepop
