#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// The steps that are a stage's: `length` of them from `begin` on, in each cycle anew. A function
/// of the step alone, so nothing of it needs to be saved.
struct Turn {
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  int64_t begin = 0;
  int64_t length = kForever;
  int64_t cycle = 0;  ///< 0: there is one turn.

  /// Whether it has the step that follows `step` complete ones.
  bool has(int64_t step) const {
    const int64_t at = cycle > 0 ? step % cycle : step;
    return at >= begin && at - begin < length;
  }

  /// The part of a turn that is left at `step`, or the next turn, as [begin, end); `begin` is
  /// kForever when none is left.
  struct Span {
    int64_t begin = kForever;
    int64_t end = kForever;
  };
  Span next(int64_t step) const;
};

/// Reads how long the items of the list `stages` last, `for`, in steps or epochs and rounded to
/// at least one step: the turn of each.
/// The last may lack it and lasts to the end; when all have it, they begin again after the last.
/// No turns without `stages`. Throws UsageError, with the place, for what is no such list.
std::vector<Turn> read_turns(const Config& config, int64_t steps_per_epoch);

}  // namespace stepop
