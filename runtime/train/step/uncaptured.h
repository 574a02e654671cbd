#pragma once

#include <string>

#include "runtime/core/formats/state.h"
#include "runtime/train/iterator/context.h"

namespace stepop {

inline constexpr const char* kCudaGraph = "cuda_graph";

/// Throws UsageError at `cuda_graph` for a run whose steps cannot be captured (captured_step.h).
void check_captures(const Context& context);

/// What the iterator tracks, by name: copies of what the host has, the tensors of the device.
State tracked_places(const Context& context);

/// Why a graph could not do what a step changed; empty for nothing.
std::string uncaptured_change(const State& before, const State& after);

}  // namespace stepop
