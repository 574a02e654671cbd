#pragma once

#include <string>

namespace stepop {

/// `text` in double quotes, in one line; control characters are escaped.
std::string quoted_yaml(const std::string& text);

/// A float that reads back as one: with a point, which YAML 1.1 asks for beside an exponent too.
std::string yaml_float(double number);

}  // namespace stepop
