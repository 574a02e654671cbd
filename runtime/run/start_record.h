#pragma once

#include <string>

namespace stepop {

/// `main a1b2c3d, clean`, of the git repository around the current folder; `none` without one.
std::string git_state();

std::string host_name();

/// When the newest of the program and of the libraries that it has loaded was written, in UTC:
/// `2026-11-21T10:00:00.123456789`. Another build gives another.
std::string program_time();

}  // namespace stepop
