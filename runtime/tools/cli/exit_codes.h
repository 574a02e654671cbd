#pragma once

namespace stepop {

/// The exit code when a callback of an evaluation failed and everything else went well.
inline constexpr int kCallbackFailed = 3;

/// The exit code of a --check in which all ops passed, but repeated steps give other results by
/// state that is not tracked. A sweep still trains such runs.
inline constexpr int kDoesNotRepeat = 3;

}  // namespace stepop
