#pragma once

#include <string>

#include "runtime/core/base/interrupt.h"

namespace stepop {

/// During its lifetime, a signal that asks the program to end sets a flag, which the loop reads
/// between steps: SIGINT, SIGTERM, SIGUSR1 (Slurm sends it before its time limit) and SIGHUP (the
/// terminal is gone; not under nohup). A second signal other than SIGUSR1 ends the process at once,
/// with the status 128 + its number. SIGPIPE and SIGXFSZ are ignored, so a closed pipe or a full
/// quota is an error of `write` with a message. Only one may exist at a time.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// The number of the signal that arrived, or 0.
  static int received();

  /// Called in the signal handler: `is_last` when the process ends right after it.
  using Listener = void (*)(int signal_number, bool is_last);
  /// Takes the place of the earlier listener; null for none.
  static void set_listener(Listener listener);
};

/// `SIGTERM`.
std::string signal_name(int signal_number);

/// Throws Interrupted, with the exit code 128 + the signal's number, when a signal arrived.
void throw_if_signal_arrived();

}  // namespace stepop
