#pragma once

#include <string>

#include "runtime/train/iterator/context.h"

namespace stepop {

/// Throws Error when a tensor of a network is on another kind of device than the run. A network may
/// be spread over several GPUs.
void check_devices(const Context& context);

/// Throws Error for parameters of the config's networks that require a gradient and that no update
/// trains, unless the iterator trains their network by hand.
void check_all_trained(const Context& context);

/// Throws Error for parameters that an update trains and that no checkpoint would hold: no network
/// of the config has them, and no tracked object has their values; and for complex numbers in a
/// network's state, which no file of a checkpoint can hold.
void check_all_saved(const Context& context);

/// Makes the first losses of every update throw Error when they depend on a parameter without an
/// owner: no network, no update and no tracked object has it. Most often it belongs to a layer
/// without `register_module`, which would be neither trained nor saved.
///
/// Such a parameter is a leaf of the graph that requires a gradient. A tensor that a step creates,
/// such as the input of a gradient penalty, is also such a leaf; therefore only a leaf that appears
/// in the losses of two batches is an error. Another one is a warning where an operation takes it
/// as the weight of a layer. The graphs of two batches are searched, no more.
void watch_losses(const Context& context);

/// A warning about parameters that two updates train, each by its own loss; or an empty text.
std::string shared_parameters(const Context& context);

}  // namespace stepop
