#pragma once

#include <string>
#include <vector>

namespace stepop {

/// The folders in which the system's loader looks for libraries of this program, best first.
std::vector<std::string> library_folders();

}  // namespace stepop
