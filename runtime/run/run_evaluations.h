#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ordered_map.h"
#include "runtime/run/run_directory.h"

namespace stepop {

/// An evaluation that came to its end, `eval/<start>/<step>/scalars.json`.
struct RunEvaluation {
  std::string start;  ///< `<time>_<name>`
  int64_t step = 0;
  std::string scalars;  ///< The path of the file.
};

/// Those of trainings, or those without one, by their starts and then by step. The files are not
/// read.
std::vector<RunEvaluation> find_run_evaluations(const RunDirectory& run, bool of_trainings);

/// The numbers of one; empty when they cannot be read.
OrderedMap<double> scalars_of(const RunEvaluation& evaluation);

}  // namespace stepop
