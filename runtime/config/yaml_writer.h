#pragma once

#include <string>

#include "runtime/config/value.h"

namespace stepop {

/// Block YAML that reads back as the same types and values; ends with a newline.
std::string to_yaml(const Value& value);

/// One line of flow YAML: `[1, 2]`, `{a: 1.5, b: text}`.
std::string flow_yaml(const Value& value);

/// `text` in double quotes, in one line; control characters are escaped.
std::string quoted_yaml(const std::string& text);

}  // namespace stepop
