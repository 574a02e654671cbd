#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/tools/code/compiler.h"

namespace stepop {

/// Told to people while they wait.
using Say = std::function<void(const std::string&)>;

/// The header to include before all others, `-include`, so that <stepop/stepop.h> and what it takes
/// of LibTorch are not parsed again: it was made with the build or the installation, else it is
/// made in the cache `folder`, once. None for a compiler that is not GCC.
std::optional<std::string> precompiled_header(const Compiler& compiler, const std::string& folder,
                                              const Say& say);

/// Makes the one of this build or installation, unless it is there.
void prepare_precompiled_header(const Compiler& compiler);

}  // namespace stepop
