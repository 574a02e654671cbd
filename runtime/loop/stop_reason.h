#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/loop/session.h"

namespace stepop {

/// Why a training ends.
struct StopReason {
  enum class Kind { kNone, kDone, kMetric, kTime, kSignal };
  Kind kind = Kind::kNone;
  std::string text;  ///< `all 230 steps are done`
  int signal = 0;
};

/// Why a training that began at `first_step` ends where the session is, if it does: a signal, the
/// deadline, the last step, `stop_when`.
StopReason stop_reason(Session& session, int64_t first_step,
                       std::chrono::steady_clock::time_point deadline);

}  // namespace stepop
