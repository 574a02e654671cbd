#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// A config with `value` at `path`, which messages then name.
Config config_at(const std::string& path, Value value);

/// The options of an inner component, `subtype: add_noise, scale: 0.1`: the options of `params`,
/// with the subtype, which must be there, as `type`, and with other values for some keys.
Config inner_params(const Config& params, std::vector<std::pair<std::string, Value>> replaced);

/// Throws UsageError for an option that the inner component did not read; call it after the
/// component is built. `own`: the options that the outer component reads.
void check_inner(const Config& inner, const Config& params, const std::vector<std::string>& own);

}  // namespace stepop::extensible
