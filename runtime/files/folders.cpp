#include "runtime/files/folders.h"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/error.h"

namespace stepop {

void make_folders(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) throw Error(fmt::format("{}: cannot make this folder: {}", path, failed.message()));
}

}  // namespace stepop
