#include "runtime/tools/front/library_folders.h"

#include <dlfcn.h>

#include <cstddef>
#include <filesystem>
#include <system_error>

#include "runtime/core/base/error.h"
#include "runtime/core/system/stepop_library.h"

namespace stepop {

std::vector<std::string> library_folders() {
  void* const self = ::dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size{};
  ::dlinfo(self, RTLD_DI_SERINFOSIZE, &size);
  std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* const found = reinterpret_cast<Dl_serinfo*>(memory.data());
  *found = size;
  ::dlinfo(self, RTLD_DI_SERINFO, found);
  std::vector<std::string> folders;
  for (unsigned int i = 0; i < found->dls_cnt; ++i) {
    folders.emplace_back(found->dls_serpath[i].dls_name);
  }
  return folders;
}

/// The library that the whole program would load.
std::filesystem::path stepop_library() {
  for (const auto& folder : library_folders()) {
    std::error_code failed;
    const auto library = std::filesystem::canonical(folder + "/libstepop.so", failed);
    if (!failed) return library;
  }
  throw Error("cannot find libstepop.so: install stepop again");
}

}  // namespace stepop
