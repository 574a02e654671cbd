#pragma once

#include <string>

#include "runtime/iterator/context.h"

namespace stepop {

/// Throws Error for a tensor of a network that is not on the kind of device of the run. A network
/// may be spread over several GPUs.
void check_devices(const Context& context);

/// Throws Error for parameters of the config's networks that require a gradient and that no update
/// trains, other than those of networks that the iterator trains by hand.
void check_all_trained(const Context& context);

/// Throws Error for parameters that an update trains and that no checkpoint would hold: they are of
/// no network of the config, and nothing that is tracked has their values.
void check_all_saved(const Context& context);

/// A warning, or nothing, of parameters that two updates train: each moves them by its own loss.
std::string shared_parameters(const Context& context);

}  // namespace stepop
