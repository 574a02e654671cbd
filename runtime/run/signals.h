#pragma once

#include <string>

#include "runtime/base/interrupt.h"

namespace stepop {

/// While it lives, the signals that ask a program to end only set a flag, which the loop reads
/// between steps: SIGINT, SIGTERM, SIGUSR1 (what Slurm sends before its limit), SIGHUP (a terminal
/// that went away; unless it is ignored, as under nohup). A second one ends the process at once
/// with 128 + its number. SIGPIPE and SIGXFSZ are ignored, so that a closed pipe and a full quota
/// are errors of `write` with a message. One at a time.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// The number of the signal that arrived, or 0.
  static int received();
};

/// `SIGTERM`.
std::string signal_name(int signal_number);

/// Throws Interrupted, with the exit code 128 + the signal's number, when one arrived.
void throw_if_signal_arrived();

}  // namespace stepop
