#include "runtime/core/system/stepop_library.h"

#include <dlfcn.h>

#include "runtime/core/base/error.h"

namespace stepop {

std::filesystem::path stepop_library() {
  Dl_info library{};
  const bool is_known = ::dladdr(reinterpret_cast<const void*>(&stepop_library), &library) != 0;
  if (!is_known || library.dli_fname == nullptr) {
    throw Error("cannot find libstepop.so, which is running");
  }
  return std::filesystem::canonical(library.dli_fname);
}

}  // namespace stepop
