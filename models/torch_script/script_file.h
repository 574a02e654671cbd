#pragma once

#include <torch/csrc/jit/api/module.h>

#include "runtime/config/config.h"

namespace stepop {

/// Loads what `torch.jit.save` wrote at the path that stands at `key`. Throws UsageError that tells
/// what the file is when it is something else: a folder, a state_dict, weights without code.
torch::jit::Module load_script(const Config& params, std::string_view key);

}  // namespace stepop
