#pragma once

#include <string>
#include <vector>

#include "runtime/tools/code/precompiled_header.h"

namespace stepop {

/// What a user's sources became.
struct CompiledCode {
  std::string library;             ///< The shared library, in the cache.
  std::vector<std::string> files;  ///< The sources and the headers of the user's that they include.
};

/// Where compiled code is kept: $STEPOP_CACHE, else $XDG_CACHE_HOME/stepop, else ~/.cache/stepop.
/// Throws Error when none of them names a folder.
std::string code_cache_folder();

/// Compiles the sources (absolute paths) to one shared library, unless the cache has one of the
/// same code: of the sources, of the headers that they include, comments aside, of flags and
/// versions. Where
/// they lie does not matter, so a copy is not compiled again. Two processes that start at once
/// compile once. Libraries that nobody used for 60 days go.
///
/// `flags` are for the compiler and the linker. `say` gets a line while a compiler runs, and its
/// warnings. Throws CompileError, and Error for a cache that cannot be written.
CompiledCode compile_code(const std::vector<std::string>& sources,
                          const std::vector<std::string>& flags, const Say& say,
                          const InterruptCheck& interrupt);

}  // namespace stepop
