#pragma once

#include <filesystem>

namespace stepop {

/// The file of the program that users call. This process may run another one, the whole program,
/// which lies in `stepop_program/` beside libstepop.so. Empty when the system does not know it.
std::filesystem::path program_file();

}  // namespace stepop
