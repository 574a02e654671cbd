#pragma once

#include <string>
#include <vector>

#include "runtime/train/iterator/context.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// Numbers of the optimizers that nearly nobody means, as their training learns nothing or breaks:
/// a rate of 0 or of hundreds, betas in the other order, an `eps` that outweighs the gradients, a
/// decay that takes most of a weight in some steps, a clip far below each gradient. A text each,
/// with the place in the config. `length` is `this training of 8 steps`.
std::vector<std::string> optimizer_warnings(const Settings& settings, const Context& context,
                                            const std::string& length);

}  // namespace stepop
