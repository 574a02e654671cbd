#pragma once

#include <string>
#include <string_view>

#include "runtime/core/formats/state.h"

namespace stepop {

/// A state as bytes, to be sent to another process of the same build. Tensors on other devices are
/// copied to the CPU first; undefined tensors stay undefined.
std::string to_bytes(const State& state);

/// Restores the state from the result of `to_bytes`; the tensors have their own memory.
State state_from_bytes(std::string_view bytes);

}  // namespace stepop
