#include "runtime/core/programs/find_program.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace stepop {

std::string find_program(const std::string& name) {
  const auto can_run = [](const std::string& path) {
    std::error_code failed;
    return ::access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path, failed);
  };
  if (name.find('/') != std::string::npos) return can_run(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (can_run(candidate)) return candidate;
  }
  return "";
}

}  // namespace stepop
