#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/data/views/view.h"

namespace stepop {

/// The indices of one part of a dataset, sorted. `split` in `params` names the parts and their
/// shares, `part` the requested part:
///
///     part: train
///     split: {parts: {train: 0.9, validation: 0.1}, seed: 0, groups: person}
///
/// Examples go to parts at random; only the seed decides. With `groups`, a label, all examples with
/// the same value of the label go to the same part, and a part has about its share. Parts share no
/// example, and if the shares sum up to 1, no example is left out. Throws UsageError for invalid
/// shares, for a part that stays empty and for an unknown label.
std::vector<int64_t> read_part(const Config& params, const Source& source);

}  // namespace stepop
