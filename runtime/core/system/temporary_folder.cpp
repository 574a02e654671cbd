#include "runtime/core/system/temporary_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "runtime/core/base/error.h"

namespace stepop {

TemporaryFolder::TemporaryFolder(std::string_view name)
    : path_(fmt::format("{}/{}-XXXXXX", std::filesystem::temp_directory_path().string(), name)) {
  if (::mkdtemp(path_.data()) == nullptr) {
    throw Error(fmt::format("cannot make a temporary folder {}: {}", path_,
                            std::generic_category().message(errno)));
  }
}

TemporaryFolder::~TemporaryFolder() { remove(); }

void TemporaryFolder::remove() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stepop
