#pragma once

#include <string>

#include "runtime/formats/state.h"

namespace torch::nn {
class Module;
}

namespace stepop {

/// The parameters and buffers of a network by name. They share memory with it.
State tensors_of(const torch::nn::Module& module);

/// Copies `state` into the tensors `own` of what is tracked as `name`. Throws Error, and changes
/// nothing, when a tensor is missing, left over, or of another shape or type.
void load_tensors(const std::string& name, const State& own, const State& state);

}  // namespace stepop
