#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/name_pattern.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// The regular expression at `path`, for example to choose parameters by their names. Throws
/// UsageError with the place for a text that is no regular expression.
NamePattern read_pattern(const Config& config, std::string_view path);
/// The same for one expression or a list.
std::vector<NamePattern> read_patterns(const Config& config, std::string_view path);

/// The positions of the parameter or module names that match `pattern`. If none of `names` matches,
/// their other form is tried: `model.encoder.weight` and `encoder.weight` are the two forms of a
/// name, with and without the network's name. `others` have the order of `names`.
std::vector<size_t> find_names(const NamePattern& pattern, const std::vector<std::string>& names,
                               const std::vector<std::string>& others);

}  // namespace stepop
