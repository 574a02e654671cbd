#pragma once

#include <cstdint>
#include <string>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// The files that `drop_logs_after_step` moved.
struct DroppedLogs {
  std::string folder;  ///< Relative to the run, `train/superseded/<time>`; empty: nothing moved.
  int64_t metrics = 0;
  int64_t checkpoints = 0;
  int64_t files = 0;       ///< Pictures, texts, and unfinished evaluations.
  int64_t non_finite = 0;  ///< Folders of steps that met NaN.
  std::string repaired;    ///< What was wrong with the metrics file, as a sentence; empty: nothing.
};

/// Makes room for a training that resumes at `step`, or begins from scratch with -1: the
/// checkpoints, metrics, pictures, texts and unfinished evaluations of later steps move to
/// `train/superseded/<time>/`, where they keep their names. At step 0, the metrics, pictures and
/// texts of step 0 move too, because it is logged again. Removes an incomplete line of metrics that
/// a killed process left. May be killed at any moment and called again. Throws Error when a file
/// cannot be moved.
DroppedLogs drop_logs_after_step(const RunDirectory& directory, int64_t step,
                                 const std::string& time);

}  // namespace stepop
