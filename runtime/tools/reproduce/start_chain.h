#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tools/cli/run_starts.h"

namespace stepop {

/// A training of those that led to where a run is.
struct ChainedStart {
  const KnownStart* start = nullptr;
  int64_t begin = 0;                   ///< Its first step; -1 when that is not known.
  std::vector<std::string> also = {};  ///< Times of starts that went on in the same way.
};

/// Of the `trainings` of the run at `root`, which outlive the result, those that count: what came
/// after the step at which a later one began is gone, and those that were resumed with the same
/// config are one. What is not known is added to `problems`.
std::vector<ChainedStart> chain_of_trainings(const std::string& root,
                                             const std::vector<KnownStart>& trainings,
                                             std::vector<std::string>& problems);

}  // namespace stepop
