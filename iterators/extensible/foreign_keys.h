#pragma once

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// Handles DL-Art-School keys that this iterator does not have: `train: {ema_rate: 0.999}` becomes
/// the runtime's `ema: {decay: 0.999}`; any other key throws UsageError with the equivalent key
/// here. A key that disables a feature missing here is read and ignored.
void take_foreign_keys(const Config& config);

}  // namespace stepop::extensible
