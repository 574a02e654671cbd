#pragma once

#include <string>

#include "runtime/core/measure/profile.h"

namespace stepop {

/// A table for people of where the time of a training went: its parts, those within others below
/// them from 0.05 % of the whole on, the longest first; each with its share of the whole, its
/// milliseconds for each step, how often it came, the median of its times (to within 0.4 %), and
/// their sum. The last row is what lies in no part. Of several processes a line says how much of
/// their sums lay beside the backward passes.
std::string profile_table(const Profile& profile);

/// The events of the first steps in Chrome's trace format (JSON), which chrome://tracing and
/// Perfetto open: one line a thread, times in microseconds since the profile began.
std::string chrome_trace(const Profile& profile);

}  // namespace stepop
