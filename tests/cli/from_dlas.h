#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/core/value/yaml_reader.h"
#include "tests/cli/code_run.h"
#include "tests/cli/digits_run.h"

namespace stepop {
namespace from_dlas_test {

/// The config that `make` wrote.
inline Value made(const ScratchFolder& folder, const std::string& name) {
  return parse_yaml(read_bytes(folder / (name + "/" + name + ".yaml")), {"made", 0});
}

/// Translates a config of DL-Art-School.
inline CommandResult make(const ScratchFolder& folder, const std::string& name,
                          const std::string& yaml) {
  folder.write("train_x.yml", yaml);
  const CommandResult result = run_in(folder, "stepop new " + name + " --from-dlas train_x.yml");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  return result;
}

/// The notes of a translation are on the terminal.
inline void check_notes(const CommandResult& result, const std::vector<std::string>& notes) {
  for (const auto& note : notes) {
    CAPTURE(note);
    CHECK(result.out.find("\n  " + note) != std::string::npos);
  }
}

}  // namespace from_dlas_test
}  // namespace stepop
