#pragma once

#include <string>

#include "runtime/run/run_lock.h"

namespace stepop {

/// What became of a run's last training.
enum class RunState {
  kUnknown,  ///< No readable process.json: none trained, or a version before it did.
  kRunning,
  kEnded,    ///< It came to its end.
  kStopped,  ///< By a signal or `max_time`.
  kFailed,   ///< By an error.
  kKilled,   ///< It says that it runs, and its process is gone.
};

/// `running`, `ended`, ...; `unknown`.
const char* name_of(RunState state);

/// A run's state with the process it is told of.
struct RunStatus {
  RunState state = RunState::kUnknown;
  RunProcess process;

  /// `running vm:7354`, `killed`
  std::string text() const;
};

/// Reads `train/process.json`. Looks only: it neither takes the lock, which would turn away a
/// training that starts at this moment, nor writes. A process of this host lives when its pid and
/// start time are there; one of another host until the file was not renewed for a minute, by the
/// clock of this one.
RunStatus read_run_status(const std::string& process_file);

}  // namespace stepop
