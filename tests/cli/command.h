#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {

/// What a command left behind.
struct CommandResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Runs a line of the shell in `folder`, where `stepop` is the binary that was built.
inline CommandResult run_in(const ScratchFolder& folder, const std::string& line) {
  folder.write(".script", "stepop() { '" STEPOP_BINARY_DIR "/stepop' \"$@\"; }\n" + line + "\n");
  const std::string script = "cd '" + folder.path() + "' && bash .script >.out 2>.err </dev/null";
  const int status = std::system(script.c_str());
  if (!WIFEXITED(status)) throw std::runtime_error("the shell was killed: " + line);
  return {WEXITSTATUS(status), read_bytes(folder.path(".out")), read_bytes(folder.path(".err"))};
}

/// The folder of the only run in `logs/`; empty when there is none.
inline std::string only_run(const ScratchFolder& folder, const std::string& logs = "logs") {
  const std::filesystem::path path = folder.path(logs);
  if (!std::filesystem::is_directory(path)) return "";
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (!found.empty()) throw std::runtime_error("more than one run in " + path.string());
    found = logs + "/" + entry.path().filename().string();
  }
  return found;
}

}  // namespace stepop
