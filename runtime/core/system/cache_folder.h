#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// Where stepop keeps what it can make again: $STEPOP_CACHE, else $XDG_CACHE_HOME/stepop, else
/// ~/.cache/stepop. Throws Error `no folder for <what>` when none of them names a folder.
std::string cache_folder(std::string_view what);

}  // namespace stepop
