#pragma once

namespace stepop {

/// What the program returns when a callback of an evaluation failed and all else went well.
inline constexpr int kCallbackFailed = 3;

/// The exit status of a --check that all ops passed, of steps that, repeated, give something else.
/// A sweep trains such runs.
inline constexpr int kDoesNotRepeat = 3;

}  // namespace stepop
