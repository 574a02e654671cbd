#pragma once

namespace stepop {

/// What a command of the front program throws, before it prints anything, when its arguments ask
/// for something that needs LibTorch: the whole program then runs the command.
struct NeedsLibTorch {};

}  // namespace stepop
