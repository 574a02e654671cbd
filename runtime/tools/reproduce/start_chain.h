#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tools/start/run_starts.h"

namespace stepop {

/// One of the trainings that led to a run's current state.
struct ChainedStart {
  const KnownStart* start = nullptr;
  int64_t begin = 0;                   ///< The first step; -1 when it is unknown.
  std::vector<std::string> also = {};  ///< Times of starts that resumed it unchanged.
};

/// The `trainings` of the run at `root` that led to its state; `trainings` must outlive the result.
/// Steps after the step at which a later training began are gone, and resumed trainings with the
/// same config are one. Unknown facts are added to `problems`.
std::vector<ChainedStart> chain_of_trainings(const std::string& root,
                                             const std::vector<KnownStart>& trainings,
                                             std::vector<std::string>& problems);

}  // namespace stepop
