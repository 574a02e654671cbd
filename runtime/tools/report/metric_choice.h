#pragma once

#include <string>
#include <vector>

#include "runtime/tools/report/run_curves.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// The full name of the number that `asked` means: `asked` itself if a run has logged it, else the
/// only name that ends in the same word and has the other words of `asked` before it: `accuracy` or
/// `validation/accuracy` for `validation/eval_op/accuracy/accuracy`. If there are several, the name
/// with the word `eval_op`. Throws UsageError, which begins with `where`, when no name or several
/// names match; returns `asked` when no run has logged anything.
std::string choose_metric(const std::string& asked, const std::vector<RunDirectory>& runs,
                          const std::string& where);

/// One number of a run, from its evaluations without a training if no training logged it. Empty
/// when nothing can be read.
ScalarSummary summarize_scalar(const RunDirectory& run, const std::string& name);

}  // namespace stepop
