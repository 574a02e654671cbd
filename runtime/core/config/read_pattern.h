#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/name_pattern.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// The regular expression at `path`, such as one that chooses parameters by their names. Throws
/// UsageError with the place for text that is none.
NamePattern read_pattern(const Config& config, std::string_view path);
/// The same, or a list of them.
std::vector<NamePattern> read_patterns(const Config& config, std::string_view path);

/// The positions of the names of parameters or modules that `pattern` means: of `names` that have
/// it, else of those that have it in their other form. `model.encoder.weight` and `encoder.weight`
/// are the two forms of a name, with and without that of its network; `others` are in the order of
/// `names`.
std::vector<size_t> find_names(const NamePattern& pattern, const std::vector<std::string>& names,
                               const std::vector<std::string>& others);

}  // namespace stepop
