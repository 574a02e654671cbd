#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/data/views/view.h"

namespace stepop {

/// The indices of one part of a dataset, sorted. `split` in `params` names the parts and their
/// shares, `part` the one that is wanted:
///
///     part: train
///     split: {parts: {train: 0.9, validation: 0.1}, seed: 0, groups: person}
///
/// Examples go to parts at random, by the seed alone. With `groups`, a label, all examples with one
/// value of it go to the same part, and a part has about its share. Parts share no example, and
/// with shares that sum up to 1 none is left out. Throws UsageError for shares that do not make
/// sense, for a part that stays empty and for a label that is not there.
std::vector<int64_t> read_part(const Config& params, const Source& source);

}  // namespace stepop
