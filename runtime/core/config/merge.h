#pragma once

#include "runtime/core/value/value.h"

namespace stepop {

/// Merges `later` over `base`: maps merge deeply, lists and scalars are replaced. In `later`, the
/// tag `!replace` on a map replaces the whole map of `base`; `!remove` removes the key.
void merge(Value& base, const Value& later);

}  // namespace stepop
