#pragma once

#include <string>
#include <vector>

namespace stepop {

/// Throws Error for a file that is no library with components, and for a library that was built
/// against other versions than this program, with both versions: loading it could crash.
void check_built_against(const std::string& path, const std::string& name);

/// Loads a shared library with components, which register themselves; the library stays loaded.
/// Messages call it `name`, the user's source; `files` are the sources and headers from which it
/// was compiled, if known. Throws Error if the library cannot be loaded, or if it throws or
/// registers a name twice while it is loaded. A crash during the load ends the process with a
/// message.
void load_library(const std::string& path, const std::string& name,
                  const std::vector<std::string>& files = {});

}  // namespace stepop
