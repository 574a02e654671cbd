#pragma once

#include <cstdint>
#include <limits>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// When a part of the training is on, by the number of the iteration, which counts from 0:
/// `after: 4` from iteration 4 on, `before: 9` up to iteration 9, `every: 5` in 0, 5, 10, ....
struct Gate {
  Gate() = default;
  /// Reads the three keys of `part`; `with_every`: it has the last one. Throws UsageError for a
  /// negative one, for `every: 0`, and for a gate that never opens.
  explicit Gate(const Config& part, bool with_every = true);

  bool is_open(int64_t iteration) const {
    return iteration >= after && iteration <= before && iteration % every == 0;
  }

  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  int64_t after = 0;
  int64_t before = kForever;
  int64_t every = 1;
};

}  // namespace stepop::extensible
