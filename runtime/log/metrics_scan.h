#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/log/metrics_file.h"

namespace stepop {

/// Calls `visit` with each line of a metrics file, in its order, holding one line at a time. Lines
/// that are no metrics, half a last one included, are passed over; returns how many whole ones
/// were. Throws Error when the file cannot be read.
int64_t scan_metrics(const std::string& path, const std::function<void(const MetricsLine&)>& visit);

/// Calls `visit` with each value of one metric and its step, in the order of the file; lines that
/// cannot hold it are not parsed. Throws Error when the file cannot be read.
void scan_metric(const std::string& path, const std::string& metric,
                 const std::function<void(int64_t step, double value)>& visit);

/// The end of a file of lines: the whole ones that its last `bytes` hold, as they stand; of so many
/// more that it is one at least. Half a last line is left out. Throws Error when the file cannot be
/// read.
std::vector<std::string> last_lines(const std::string& path, int64_t bytes = 65536);

}  // namespace stepop
