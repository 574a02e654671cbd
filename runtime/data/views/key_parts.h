#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/batch.h"

namespace stepop {

// Examples that are put together of several, each under a prefix of its own: `left/image`.

/// Adds what `part` holds to `whole`, with `prefix` before each key; throws Error for a key that is
/// there already.
void add_part(Example& whole, std::string_view prefix, Example part);
void add_part(Batch& whole, std::string_view prefix, const Batch& part);

/// What of `whole` is below `prefix`, without it.
Example part_below(const Example& whole, std::string_view prefix);

}  // namespace stepop
