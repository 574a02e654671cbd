#pragma once

#include <string>
#include <string_view>

#include "runtime/core/config/config.h"

namespace stepop {

/// Reads the name of an object in Python: `my_data.py:Train` or `package.module:Train`. The file's
/// name becomes absolute. Throws UsageError, with `example` as the object's name, for an empty text
/// and for a file that is missing or stands alone.
std::string read_python_object(const Config& params, std::string_view key,
                               std::string_view example);

/// The map `kwargs`, the arguments that the object is called with, as JSON. Throws UsageError for
/// anything but a map.
std::string read_python_kwargs(const Config& params);

}  // namespace stepop
