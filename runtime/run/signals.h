#pragma once

namespace stepop {

/// While it lives, SIGINT and SIGTERM only set a flag, which the loop reads between steps; the
/// second one ends the process at once with 128 + its number. One at a time.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// The number of the signal that arrived, or 0.
  static int received();
};

}  // namespace stepop
