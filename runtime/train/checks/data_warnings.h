#pragma once

#include <string>
#include <vector>

#include "runtime/train/iterator/context.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// Data of evaluations that are hardly what is meant: the training's examples or some of them, more
/// examples than the training has, images that are changed at random or drowned in noise. A text
/// each, with the place in the config.
std::vector<std::string> data_warnings(const Settings& settings, const Context& context);

}  // namespace stepop
