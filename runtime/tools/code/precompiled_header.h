#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/tools/code/compiler.h"

namespace stepop {

/// Shows a line to a user who waits.
using Say = std::function<void(const std::string&)>;

/// Changes with everything that a precompiled header is made of: the compiler, its flags, versions,
/// and the content of stepop's headers.
std::string precompiled_header_key(const Compiler& compiler);

/// The flags with which a source begins with the precompiled header, so that <stepop/stepop.h> and
/// its parts of LibTorch are not parsed again. The header comes from the build or the installation,
/// or is made once in the cache `folder`. `key` is of `precompiled_header_key`. Nothing for a
/// compiler other than GCC and Clang.
///
/// `say` gets a line before a header is made, with the time and the size of the last one that this
/// compiler made on this machine, and a line with its own time and size.
std::vector<std::string> precompiled_flags(const Compiler& compiler, const std::string& key,
                                           const std::string& folder, const Say& say);

/// Makes the header of this build or installation, unless it exists.
void prepare_precompiled_header(const Compiler& compiler, const Say& say);

/// The file in the cache folder with the times and sizes of the headers that were made.
inline constexpr const char* kMeasuredHeaders = "measured.json";

}  // namespace stepop
