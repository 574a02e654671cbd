#pragma once

#include "runtime/core/config/value.h"

namespace stepop {

/// `later` laid over `base`: maps merge deeply, lists and scalars replace. In `later`, the tag
/// `!replace` on a map replaces the map of `base` whole, `!remove` drops the key.
void merge(Value& base, const Value& later);

}  // namespace stepop
