#pragma once

#include <string>

#include "runtime/networks/networks.h"

namespace stepop {

/// A table for people of what the networks consist of: every module with its class, its parameters
/// that are trained and all, and the bytes of its parameters and buffers; modules within others are
/// indented below them and counted in them. A tensor that stands in a module twice counts once.
/// Modules without any tensor are left out. Empty when there is no network.
std::string module_table(const Networks& networks);

}  // namespace stepop
