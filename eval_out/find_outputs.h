#pragma once

#include <string>

namespace stepop {

/// The file of evaluation outputs that `path` means: a file itself, an `outputs.h5` or its `.part`;
/// the folder of an evaluation; or the folder of a run, whose latest evaluation it is, by the time
/// in its folder's name and then by its step. One that came to its end goes before one that did
/// not. Throws UsageError, which says what was looked for, when there is none.
std::string find_outputs(const std::string& path);

}  // namespace stepop
