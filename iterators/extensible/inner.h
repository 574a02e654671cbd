#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// A config that has `value` at `path`, the place that messages then name.
Config config_at(const std::string& path, Value value);

/// The options of a component that another one holds, `subtype: add_noise, scale: 0.1`: those of
/// `params`, its `type` being the subtype, with other values for some keys.
Config inner_params(const Config& params, std::vector<std::pair<std::string, Value>> replaced);

/// Throws UsageError for an option that the inner component did not read, once it is built;
/// `own`: those that the outer one reads.
void check_inner(const Config& inner, const Config& params, const std::vector<std::string>& own);

}  // namespace stepop::extensible
