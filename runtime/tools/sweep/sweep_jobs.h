#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/tools/sweep/sweep_plan.h"

namespace stepop {

/// Options for the starts of a sweep's runs.
struct SweepOptions {
  int64_t jobs = 1;                          ///< The number of simultaneous processes.
  std::vector<std::string> more_words = {};  ///< For each start, such as `--current-code`.
  std::vector<std::string> gpus = {};  ///< Of which each run gets one; empty: all runs see all.
  std::string launcher = {};           ///< Words of a shell before each run's command.
  std::function<void(const std::string&)> say = {};  ///< Receives lines for the user.
};

/// The result of a sweep.
struct SweepOutcome {
  int signal = 0;     ///< The signal that asked the sweep to end, or 0.
  size_t failed = 0;  ///< The runs that failed or were killed in this start of the sweep.
  bool has_failed_callback = false;  ///< Whether a callback failed in a completed run.
};

/// Runs the remaining runs of a plan, each as a process of this program: ended runs are skipped,
/// runs with a folder are resumed, and other runs are started. Returns when all runs have ended, or
/// when a signal arrived (a SignalGuard must exist) and all runs have saved. Waits for a run's
/// process from an earlier start of the sweep.
SweepOutcome run_sweep(const SweepPlan& plan, const SweepOptions& options);

/// Starts the runs at `places` of the plan with --check, which tries every op and writes nothing.
/// Throws UsageError with the first error, which begins with `where`; throws Interrupted after a
/// signal.
void check_runs(const SweepPlan& plan, const std::vector<size_t>& places,
                const SweepOptions& options, const std::string& where);

}  // namespace stepop
