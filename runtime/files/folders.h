#pragma once

#include <string>

namespace stepop {

/// Makes a folder and those above it; nothing when it is there. Throws Error with the path and the
/// reason.
void make_folders(const std::string& path);

}  // namespace stepop
