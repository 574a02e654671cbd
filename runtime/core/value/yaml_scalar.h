#pragma once

#include <string>

namespace stepop {

/// `text` in double quotes, on one line; control characters are escaped.
std::string quoted_yaml(const std::string& text);

/// A float that reads back as a float: with a point, which YAML 1.1 requires even with an exponent.
std::string yaml_float(double number);

}  // namespace stepop
