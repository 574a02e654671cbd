#pragma once

namespace stepop {

/// The variable by which a sweep tells the --check of its runs the metric of its table, so that a
/// wrong name is found before the first run.
inline constexpr const char* kRankedBy = "STEPOP_SWEEP_METRIC";

}  // namespace stepop
