#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tools/tune/candidate.h"
#include "runtime/tools/tune/ratios.h"
#include "runtime/tools/tune/workbench.h"

namespace stepop {

struct TuneResult {
  /// Confirmed by a second measurement with new processes; without any settings when nothing is
  /// faster than the present ones beyond the noise.
  Candidate winner;
  Ratio confirmed = {};  ///< Of the winner in the second measurement, with an error of 0.002.
  /// What looked faster first, and did not when it was measured again.
  std::vector<std::string> not_confirmed = {};
  /// For which there was no time.
  std::vector<std::string> not_tried = {};
  TunedRow present;            ///< Its `speed` is its own noise: of one portion against the next.
  std::vector<TunedRow> rows;  ///< The fastest first, failed ones last.
};

/// Looks for the settings with which steps take the least time, until the workbench's clock
/// shows `time_limit` seconds, as far as portions and starts take no longer than those before:
/// first each value of each axis by itself, then those together that helped, then the others beside
/// the best. Candidates take turns in short portions, in an order that `seed` shuffles, each next
/// to a portion of the present settings; those that are clearly slower are dropped, and the worse
/// half after some rounds (successive halving). The best is measured against the present settings
/// once more, both in new processes; only what is faster there, too, wins. Among those that differ
/// by noise alone, the one that changes the least wins.
/// Throws what `start` and `measure` throw for the present settings.
TuneResult search_settings(const std::vector<Alternatives>& axes, Workbench& workbench,
                           double time_limit, uint64_t seed);

}  // namespace stepop
