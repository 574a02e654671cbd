#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/tools/code/compiler.h"

namespace stepop {

/// Shows a line to a user who waits.
using Say = std::function<void(const std::string&)>;

/// The header to include before all others, `-include`, so that <stepop/stepop.h> and its parts of
/// LibTorch are not parsed again. It comes from the build or the installation, or is made once in
/// the cache `folder`. Nothing for a compiler other than GCC.
std::optional<std::string> precompiled_header(const Compiler& compiler, const std::string& folder,
                                              const Say& say);

/// Makes the header of this build or installation, unless it exists.
void prepare_precompiled_header(const Compiler& compiler);

}  // namespace stepop
