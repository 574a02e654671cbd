#pragma once

#include <string>

namespace stepop {

/// `main a1b2c3d, clean`, of the git repository around the current folder; `none` without one.
std::string git_state();

std::string host_name();

}  // namespace stepop
