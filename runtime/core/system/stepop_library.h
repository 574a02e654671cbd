#pragma once

#include <filesystem>

namespace stepop {

/// The path of the libstepop.so that this process runs, with links resolved. Throws Error when the
/// system does not know it.
std::filesystem::path stepop_library();

}  // namespace stepop
