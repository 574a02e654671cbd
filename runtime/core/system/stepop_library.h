#pragma once

#include <filesystem>

namespace stepop {

/// The file of libstepop.so that this process runs, without links. Throws Error when the system
/// does not know it.
std::filesystem::path stepop_library();

}  // namespace stepop
