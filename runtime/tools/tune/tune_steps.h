#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "runtime/core/value/value.h"
#include "runtime/tools/tune/candidate.h"
#include "runtime/tools/tune/search.h"
#include "runtime/tools/tune/trainee.h"

namespace stepop {

/// The seconds between the last measurement and the end of the program, also on a busy machine.
inline constexpr double kTuneEnd = 0.7;

struct TuneOptions {
  using Clock = std::chrono::steady_clock;

  Value config;           ///< Resolved, with absolute paths.
  double time_limit = 0;  ///< Seconds from `begin` on; 0: a minute, or more for slow steps.
  Clock::time_point begin;
  bool precision = false;  ///< Also tries what changes results.
  bool processes = true;   ///< Also tries several processes.
  /// Called often: what happens now, and which part of the time is over.
  std::function<void(const std::string& what, double share)> progress;

  double seconds() const;  ///< Since `begin`.
  Clock::time_point after(double seconds) const;
};

/// Which settings were found, and for what.
struct TunedSteps {
  TuneResult result = {};
  PresentSettings present = {};
  std::string device = {};  ///< `cpu, 2 threads, oneDNN on`
  int64_t batch_size = 0;
  double seconds = 0;  ///< That the search took.

  /// The winner's settings, and the present ones for all other keys.
  OrderedMap<Value> settings() const;
  /// A line for each candidate, the fastest first, and the conclusion in words.
  std::string table() const;
  /// The settings as YAML, for `-b config.yaml tuned.yaml`. Comments say on what they were
  /// measured; `config` is how the user named the config.
  std::string file_text(const std::string& config) const;
};

/// Measures whole training steps of a config with other settings, each in its own processes. Throws
/// CandidateFailed when the present config cannot train.
TunedSteps tune_steps(const TuneOptions& options, const TraineeOptions& trainees);

/// Bytes that this machine, or this process's cgroup, can still give.
double available_memory();

}  // namespace stepop
