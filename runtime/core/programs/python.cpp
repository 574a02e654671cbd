#include "runtime/core/programs/python.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "runtime/core/programs/find_program.h"
#include "runtime/core/programs/program_file.h"

namespace stepop {
namespace fs = std::filesystem;

std::string find_python(const std::string& given) {
  if (!given.empty()) return given;
  const char* named = std::getenv("STEPOP_PYTHON");
  if (named != nullptr && *named != '\0') return named;
  std::error_code failed;
  const fs::path folder = program_file().parent_path();
  for (const fs::path& place : {folder, folder.parent_path()}) {
    const fs::path python = place / ".venv/bin/python3";
    if (!place.empty() && fs::exists(python, failed)) return python.string();
  }
  return "python3";
}

std::string find_user_python(const std::string& given) {
  const char* named = std::getenv("STEPOP_PYTHON");
  if (!given.empty() || (named != nullptr && *named != '\0')) return find_python(given);
  std::error_code failed;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* folder = std::getenv(variable);
    if (folder == nullptr || *folder == '\0') continue;
    const fs::path python = fs::path(folder) / "bin/python3";
    if (fs::exists(python, failed)) return python.string();
  }
  return find_python();
}

std::string python_choice(const std::string& given) {
  const std::string taken = find_user_python(given);
  const std::string on_path = find_program("python3");
  const fs::path folder = fs::path(on_path).parent_path();
  const bool is_own = taken.ends_with("/.venv/bin/python3") && taken != given;
  std::error_code failed;
  // Debian's Python is on each PATH, and nobody has installed anything there.
  const bool is_of_system = on_path.empty() || folder == "/usr/bin" || folder == "/bin";
  if (!is_own || is_of_system || fs::equivalent(taken, on_path, failed)) return "";
  return fmt::format(
      "its Python is {}, of stepop's own folder, and not {}, which is first on the PATH: "
      "\"python\" of the dataset, VIRTUAL_ENV or STEPOP_PYTHON choose another",
      taken, on_path);
}

std::string find_python_package() {
  std::error_code failed;
  const fs::path above = program_file().parent_path().parent_path();
  for (const char* place : {"eval_out/python", "share/stepop/eval_out/python"}) {
    if (fs::exists(above / place / "stepop/eval/__init__.py", failed)) return above / place;
  }
  return "";
}

}  // namespace stepop
