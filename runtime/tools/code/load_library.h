#pragma once

#include <string>
#include <vector>

namespace stepop {

/// Throws Error for a file that is no library with components, and for one that was built against
/// other versions than this program, naming both: loading it could crash.
void check_built_against(const std::string& path, const std::string& name);

/// Loads a shared library with components, which register themselves; it stays loaded. `name` is
/// what messages call it, the user's source; `files` are the sources and headers that it was
/// compiled from, where they are known. Throws Error for one that cannot be loaded, or that throws
/// or registers a name twice while it is loaded. One that crashes meanwhile ends the process with a
/// sentence.
void load_library(const std::string& path, const std::string& name,
                  const std::vector<std::string>& files = {});

}  // namespace stepop
