#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/tools/sweep/sweep_plan.h"

namespace stepop {

/// How the runs of a sweep are started.
struct SweepOptions {
  int64_t jobs = 1;                                  ///< Processes at a time.
  std::vector<std::string> more_words = {};          ///< For each start, such as `--current-code`.
  std::function<void(const std::string&)> say = {};  ///< Gets lines for people.
};

/// What came of it.
struct SweepOutcome {
  int signal = 0;     ///< The one that asked the sweep to end, or 0.
  size_t failed = 0;  ///< Runs that failed or were killed in this start of the sweep.
  bool has_failed_callback = false;  ///< In a run that came to its end.
};

/// Runs what is left of a plan, each run as a process of this program: those that have ended are
/// passed over, those with a folder are resumed, the others are started. Returns when all ended, or
/// when a signal arrived (a SignalGuard must live) and all runs have saved. A process of a run that
/// an earlier start of the sweep left behind is waited for.
SweepOutcome run_sweep(const SweepPlan& plan, const SweepOptions& options);

/// Starts the runs at `places` of the plan with --check, which tries every op and writes nothing.
/// Throws UsageError with the first error, which begins with `where`; Interrupted when a signal
/// arrived.
void check_runs(const SweepPlan& plan, const std::vector<size_t>& places,
                const SweepOptions& options, const std::string& where);

}  // namespace stepop
