#pragma once

#include <string>

#include "runtime/core/measure/profile.h"

namespace stepop {

/// A table of where the time of a training went: its parts, and below them nested parts with at
/// least 0.05 % of the whole, longest first. Each has its share of the whole, milliseconds per
/// step, number of times, median time (to within 0.4 %), and total time. The last row is the time
/// outside of all parts. For several processes, a line says how much of their sums overlapped with
/// the backward passes.
std::string profile_table(const Profile& profile);

/// The events of the first steps in Chrome's trace format (JSON), for chrome://tracing and
/// Perfetto: one line per thread, times in microseconds since the profile began.
std::string chrome_trace(const Profile& profile);

}  // namespace stepop
