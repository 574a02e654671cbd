#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "runtime/core/config/value.h"
#include "runtime/tools/tune/candidate.h"
#include "runtime/tools/tune/search.h"
#include "runtime/tools/tune/trainee.h"

namespace stepop {

/// Called often: what is being done, and which part of the time is over.
using TuneProgress = std::function<void(const std::string& what, double share)>;

struct TuneOptions {
  Value config;           ///< Resolved, with absolute paths.
  double time_limit = 0;  ///< Seconds; 0: a minute, or more where a step takes long.
  std::chrono::steady_clock::time_point begin;  ///< From which they count.
  bool precision = false;                       ///< Also what changes results.
  bool processes = true;                        ///< Also several of them.
  TuneProgress progress;
};

/// What settings were found, and for what.
struct TunedSteps {
  TuneResult result;
  PresentSettings present;
  std::string device;  ///< `cpu, 2 threads, oneDNN on`
  int64_t batch_size = 0;
  double seconds = 0;  ///< That it took.

  /// The winner's, with all others as they are now.
  OrderedMap<Value> settings() const;
};

/// Measures whole training steps of a config with other settings, each in processes of its own.
/// Throws CandidateFailed when the config as it is cannot train.
TunedSteps tune_steps(const TuneOptions& options, const TraineeOptions& trainees);

/// Bytes that this machine, or what confines this process (cgroup), can still give.
double available_memory();

}  // namespace stepop
