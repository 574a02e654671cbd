#pragma once

#include <string>

#include "runtime/config/value.h"

namespace stepop {

/// One line of JSON with the types and values of a resolved config, for programs that have no YAML:
/// a float has a point or an exponent, an integer has none. What JSON cannot say is written as
/// Python's module json reads it: NaN, Infinity and -Infinity. Braces are not doubled, so this is
/// no config to load again.
std::string to_json(const Value& value);

}  // namespace stepop
