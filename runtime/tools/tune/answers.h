#pragma once

#include <string>

namespace stepop {

/// Writes a line to the process that measures this one, or ends this one when nobody reads it.
void answer(int file, const std::string& line);

}  // namespace stepop
