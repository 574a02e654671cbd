#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// The folder for files that stepop can make again: $STEPOP_CACHE, otherwise
/// $XDG_CACHE_HOME/stepop, otherwise ~/.cache/stepop. Throws Error `no folder for <what>` when none
/// of these variables (or $HOME) is set.
std::string cache_folder(std::string_view what);

}  // namespace stepop
