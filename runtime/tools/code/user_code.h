#pragma once

#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/tools/code/code_copy.h"
#include "runtime/tools/code/precompiled_header.h"

namespace stepop {

/// What `load_user_code` loaded.
struct UserCode {
  std::vector<std::string> files;  ///< Sources, and headers that they include; no libraries.
};

/// Compiles and loads what `code` of a config names, so that its components are known: sources
/// (`denoiser.cpp`), which are compiled together to one library with `code_flags` for compiler and
/// linker, and libraries (`libmine.so`). With a `copy` that is there, sources are taken from it.
/// What was loaded by this process before is not loaded again.
///
/// `say` gets what people should know while they wait. Throws UsageError, with its place, for
/// what is not there; CompileError; Error for what cannot be loaded, and for ops that capture by
/// reference.
UserCode load_user_code(const Config& config, const CodeCopy* copy, const Say& say,
                        const InterruptCheck& interrupt);

}  // namespace stepop
