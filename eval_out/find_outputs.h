#pragma once

#include <string>

namespace stepop {

/// The file of evaluation outputs that `path` means: itself when it is a file; the one in an
/// evaluation's folder (`eval/<start>/<step>`); of a run, of its folder `eval` or of one start in
/// that, the latest: of the last start, and of its last step. With `allow_incomplete` the .part of
/// an evaluation that did not come to its end is taken where there is no complete one. Throws Error
/// that says what is there when there is none.
std::string find_outputs(const std::string& path, bool allow_incomplete = false);

}  // namespace stepop
