#include "runtime/core/programs/program_file.h"

#include <system_error>

namespace stepop {
namespace fs = std::filesystem;

fs::path program_file() {
  std::error_code failed;
  const fs::path own = fs::read_symlink("/proc/self/exe", failed);
  const fs::path folder = own.parent_path();
  if (folder.filename() != "stepop_program") return own;
  // In a build; in an installation with lib/ or, as Debian has it, with lib/<machine>/.
  for (const char* place : {"..", "../../bin", "../../../bin"}) {
    const fs::path program = (folder / place / "stepop").lexically_normal();
    if (fs::is_regular_file(program, failed)) return program;
  }
  return own;
}

}  // namespace stepop
