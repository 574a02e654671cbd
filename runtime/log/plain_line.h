#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stepop {

/// The step of a line of metrics that is plainly as Metrics writes it, `{"step":7,"epoch":...}`:
/// looked over, not parsed, as a resume looks at every line of a run. Nothing for another one, such
/// as one with a key that JSON escapes, which `parse_metrics_line` may read all the same; but it
/// reads every line of which this tells a step, and the same step.
std::optional<int64_t> step_of_plain_line(std::string_view line);

}  // namespace stepop
