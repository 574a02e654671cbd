#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// The steps of a stage: `length` steps from `begin` on, in each cycle again. A function of the
/// step alone, so it needs no saved state.
struct Turn {
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  int64_t begin = 0;
  int64_t length = kForever;
  int64_t cycle = 0;  ///< 0: the stage has one turn.

  /// Whether the turn includes the step after `step` complete steps.
  bool has(int64_t step) const {
    const int64_t at = cycle > 0 ? step % cycle : step;
    return at >= begin && at - begin < length;
  }

  /// The rest of the current turn at `step`, or the next turn, as [begin, end). `begin` is kForever
  /// when no turn is left.
  struct Span {
    int64_t begin = kForever;
    int64_t end = kForever;
  };
  Span next(int64_t step) const;
};

/// Reads the duration `for` of each item of the list `stages`, in steps or epochs, rounded to at
/// least one step; returns the turn of each item. The last item may lack `for` and then lasts to
/// the end. When all items have it, the stages repeat as a cycle. Returns no turns without
/// `stages`. Throws UsageError, with the place, for a bad list.
std::vector<Turn> read_turns(const Config& config, int64_t steps_per_epoch);

}  // namespace stepop
