#pragma once

#include <string>

#include "runtime/config/value.h"

namespace stepop {

/// Block YAML that reads back as the same types and values; ends with a newline.
std::string to_yaml(const Value& value);

/// One line of flow YAML: `[1, 2]`, `{a: 1.5, b: text}`.
std::string flow_yaml(const Value& value);

/// One line of JSON with the types and values of a resolved config, for programs that have no YAML:
/// a float has a point or an exponent, an integer has none. What JSON cannot say is written as
/// Python's module json reads it: NaN, Infinity and -Infinity. Braces are not doubled, so this is
/// no config to load again.
std::string to_json(const Value& value);

}  // namespace stepop
