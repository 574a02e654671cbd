#pragma once

#include <cstdint>
#include <limits>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// The iterations, counted from 0, in which a part of the training is on: `after: 4` from iteration
/// 4 on, `before: 9` through iteration 9, `every: 5` in 0, 5, 10, ....
struct Gate {
  Gate() = default;
  /// Reads the keys of `part`; `every` only with `with_every`. Throws UsageError for a negative
  /// number, for `every: 0`, and for a gate that never opens.
  explicit Gate(const Config& part, bool with_every = true);

  bool is_open(int64_t iteration) const {
    return iteration >= after && iteration <= before && iteration % every == 0;
  }

  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  int64_t after = 0;
  int64_t before = kForever;
  int64_t every = 1;
};

/// The number of the first iteration of a training, in which step 0 of the runtime is:
/// `start_step` + 1 of the whole config, default 0. Throws UsageError for a number below -1.
int64_t first_iteration(const Config& config);

}  // namespace stepop::extensible
