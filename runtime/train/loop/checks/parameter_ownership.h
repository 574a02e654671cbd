#pragma once

#include <string>

#include "runtime/train/iterator/context.h"

namespace stepop {

/// Throws Error for a tensor of a network that is not on the kind of device of the run. A network
/// may be spread over several GPUs.
void check_devices(const Context& context);

/// Throws Error for parameters of the config's networks that require a gradient and that no update
/// trains, unless the iterator trains their network by hand.
void check_all_trained(const Context& context);

/// Throws Error for parameters that an update trains and that no checkpoint would hold: they belong
/// to no network of the config, and nothing that is tracked has their values.
void check_all_saved(const Context& context);

/// Makes the first losses of every update throw Error when they depend on a parameter that belongs
/// to nobody: to no network, no update and nothing that is tracked. Most often it is one of a layer
/// without `register_module`, which would be neither trained nor saved.
///
/// Such a parameter is a leaf of the graph that requires a gradient. So is a tensor that a step
/// makes for itself, such as the input of a gradient penalty; only a leaf that the losses of two
/// batches share is reported. The graphs of two batches are searched, then no more.
void watch_losses(const Context& context);

/// A warning, or nothing, about parameters that two updates train: each moves them by its own loss.
std::string shared_parameters(const Context& context);

}  // namespace stepop
