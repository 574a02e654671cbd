#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace stepop {

/// What a file of evaluation outputs says about itself: `global_step`, `split`, `config`, ...
using Attribute = std::variant<bool, int64_t, double, std::string>;

}  // namespace stepop
