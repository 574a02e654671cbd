#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/batch.h"

namespace stepop {

// Examples that are made of several examples, each under its own prefix: `left/image`.

/// Adds the contents of `part` to `whole`, with `prefix` before each key; throws Error for a key
/// that exists already.
void add_part(Example& whole, std::string_view prefix, Example part);
void add_part(Batch& whole, std::string_view prefix, const Batch& part);

/// The part of `whole` below `prefix`; its keys are without the prefix.
Example part_below(const Example& whole, std::string_view prefix);

}  // namespace stepop
