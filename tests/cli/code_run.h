#pragma once

#include <string>

#include "tests/cli/command.h"

namespace stepop {

/// Runs a line with a cache of compiled code in the folder, so that no other test's is there.
inline CommandResult run_with_cache(const ScratchFolder& folder, const std::string& line) {
  return run_in(folder, "export STEPOP_CACHE='" + folder.path("cache") + "'\n" + line);
}

/// Makes `name.cpp` and `name.yaml` in the folder by `stepop new`, from a template.
inline void make_new(const ScratchFolder& folder, const std::string& name,
                     const std::string& kind = "regression") {
  const CommandResult made =
      run_in(folder, "stepop new " + name + " --template " + kind + " && mv " + name + "/" + name +
                         ".* . && rm -r " + name);
  if (made.exit_code != 0) throw std::runtime_error(made.err);
}

}  // namespace stepop
