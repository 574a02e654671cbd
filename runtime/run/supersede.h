#pragma once

#include <cstdint>
#include <string>

#include "runtime/run/run_directory.h"

namespace stepop {

/// What `supersede` moved.
struct Superseded {
  std::string folder;  ///< Relative to the run: `train/superseded/<time>`; empty: nothing moved.
  int64_t metrics = 0;
  int64_t checkpoints = 0;
  int64_t images = 0;
  int64_t non_finite = 0;  ///< Folders of steps that met NaN.
  std::string mended;      ///< What was wrong with the metrics file, a sentence; empty: nothing.
};

/// Makes room for a training that goes on from `step`, -1 for one that begins anew: the
/// checkpoints, metrics and pictures of later steps move to `train/superseded/<time>/`, where they
/// keep their names; from step 0 on also the metrics and pictures of step 0, which is logged again.
/// A line of the metrics that a killed process left half written goes as well. May be killed at any
/// moment and called again. Throws Error when a file cannot be moved.
Superseded supersede(const RunDirectory& directory, int64_t step, const std::string& time);

}  // namespace stepop
