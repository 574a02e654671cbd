#pragma once

#include <string>
#include <vector>

#include "runtime/core/value/value.h"
#include "runtime/tools/report/report_json.h"
#include "runtime/tools/report/run_curves.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

// A report's data on how far a run is and on what it logged.

/// Name, folder, state, last step, metric and checkpoints. Throws Error when the run cannot be
/// read.
Json run_json(const RunDirectory& run, const RunCurves& curves);

/// The epoch and the seconds of training at steps: `{"epoch": columns, "seconds": columns}`.
Json axis_json(const RunCurves& curves);

/// The curves, the task's own before the runtime's, with their last and best values. Curves of the
/// same split, op and last word with the same points, such as the `accuracy` of two callbacks, are
/// one, which names the others in `also`.
Json curves_json(const RunCurves& curves, const Value& config);

/// Adds a note when lines of the metrics file could not be parsed.
void note_broken_lines(const RunCurves& curves, std::vector<std::string>& notes);

}  // namespace stepop
