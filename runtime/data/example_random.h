#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/base/random.h"

namespace stepop {

// The random numbers with which an example is drawn. Code that draws the example again with the
// same numbers, such as a callback that shows evaluated examples, sees the same noise and the same
// crop.

/// The seed of the order of a split's evaluations; `seed` is the run's seed.
constexpr uint64_t evaluation_seed(uint64_t seed, std::string_view split) {
  return mix_seed({seed, seed_of(split), seed_of("evaluation")});
}

/// The random numbers of the example at `position` of an epoch, for the order's seed. An evaluation
/// is epoch 0, and row i of its outputs is position i.
inline Random random_at(uint64_t order_seed, int64_t epoch, int64_t position) {
  return Random(
      mix_seed({order_seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(position)}));
}

/// The random numbers of the example `index` among the fixed examples of a split, which are the
/// same in all logs.
inline Random random_of_fixed_example(int64_t index) {
  constexpr uint64_t kSeed = 1;
  return Random(mix_seed({kSeed, static_cast<uint64_t>(index)}));
}

}  // namespace stepop
