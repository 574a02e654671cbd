#pragma once

#include <string>
#include <string_view>

#include "runtime/core/formats/state.h"

namespace stepop {

/// A state as bytes, to be sent to another process of the same build. Tensors of other devices are
/// copied to the CPU first; undefined ones stay so.
std::string to_bytes(const State& state);

/// What `to_bytes` gave; the tensors have memory of their own.
State state_from_bytes(std::string_view bytes);

}  // namespace stepop
