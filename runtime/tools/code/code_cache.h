#pragma once

#include <string>
#include <vector>

#include "runtime/tools/code/precompiled_header.h"

namespace stepop {

/// The result of compiling a user's sources.
struct CompiledCode {
  std::string library;             ///< The shared library, in the cache.
  std::vector<std::string> files;  ///< The sources, and the user's headers that they include.
  std::string compiler;            ///< Its path and version.
};

/// The folder for compiled code: $STEPOP_CACHE, else $XDG_CACHE_HOME/stepop, else ~/.cache/stepop.
/// Throws Error when none of these names a folder.
std::string code_cache_folder();

/// Compiles the sources (absolute paths) to one shared library, unless the cache has a library of
/// the same code: the same sources and included headers (except comments), flags and versions. Of
/// several sources only those are compiled whose object the cache does not have. The paths do not
/// matter, so a copy is not compiled again. If two processes start at once, only one compiles.
/// What was long unused is removed.
///
/// With `Optimization::kQuick` libraries and objects of either optimization are taken.
///
/// `flags` are for the compiler and the linker. `say` gets a line while a compiler runs, and the
/// compiler's warnings. Throws CompileError with the errors of all sources, in their order, and
/// Error for a cache that cannot be written.
CompiledCode compile_code(const std::vector<std::string>& sources,
                          const std::vector<std::string>& flags, Optimization optimization,
                          const Say& say, const InterruptCheck& interrupt);

}  // namespace stepop
