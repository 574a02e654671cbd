#pragma once

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// Keys of a config of DL-Art-School that are not this iterator's: `train: {ema_rate: 0.999}`
/// becomes the runtime's `ema: {decay: 0.999}`; for any other throws UsageError with the key that
/// says the same here. One that switches off what does not exist here is read, and nothing follows.
void take_foreign_keys(const Config& config);

}  // namespace stepop::extensible
