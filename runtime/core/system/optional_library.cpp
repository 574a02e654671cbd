#include "runtime/core/system/optional_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "runtime/core/base/error.h"

namespace stepop {

OptionalLibrary::OptionalLibrary(const std::string& file, const std::string& need)
    : file_(file), library_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) throw Error(fmt::format("{}: {}", need, ::dlerror()));
}

void* OptionalLibrary::address(const char* name) const {
  void* found = ::dlsym(library_, name);
  if (found == nullptr) throw Error(fmt::format("{} has no {}", file_, name));
  return found;
}

}  // namespace stepop
