// Networks of exported_nets.py with compiled passes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/models/exported_nets.h"

namespace stepop {

constexpr const char* kCompiled = ", compiled: true";

/// Copies of what compiled_nets.py writes: of STEPOP_COMPILED_NETS, where ctest has it made once
/// for all tests, else made for this process. Where that fails, each test says why.
inline const ScratchFolder& compiled_nets() {
  static const ScratchFolder folder;
  static const std::string failure = [] {
    try {
      if (const char* made = std::getenv("STEPOP_COMPILED_NETS"); made != nullptr) {
        std::filesystem::copy(made, folder.path());
      } else {
        write_nets("compiled_nets.py", folder);
      }
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  }();
  if (!failure.empty()) throw std::runtime_error(failure);
  return folder;
}

}  // namespace stepop
