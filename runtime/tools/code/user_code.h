#pragma once

#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/tools/code/code_copy.h"
#include "runtime/tools/code/compiler.h"
#include "runtime/tools/code/precompiled_header.h"

namespace stepop {

/// The result of `load_user_code`.
struct UserCode {
  std::vector<std::string> files;  ///< Sources, and the headers that they include; no libraries.
  std::string compiler = {};       ///< Its path and version; empty without sources.
};

/// Compiles and loads the files that a config's `code` names, so that their components are known:
/// sources (`denoiser.cpp`), which are compiled and linked to one library with `code_flags` for
/// compiler and linker, and libraries (`libmine.so`). With an existing `copy`, sources come from
/// the copy. Files that this process has loaded before are not loaded again.
///
/// `say` gets lines for a user who waits. Throws UsageError, with its place, for a missing file;
/// CompileError; Error for a library that cannot be loaded, and for ops that capture by reference.
UserCode load_user_code(const Config& config, const CodeCopy* copy, Optimization optimization,
                        const Say& say, const InterruptCheck& interrupt);

}  // namespace stepop
