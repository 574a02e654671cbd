#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/log/metrics_file.h"

namespace stepop {

/// A metrics file as a whole.
struct MetricsFile {
  std::vector<MetricsLine> lines;
  int64_t broken = 0;  ///< Whole lines that are not metrics.
};

inline MetricsFile read_metrics(const std::string& path) {
  MetricsFile file;
  file.broken = scan_metrics(path, [&](const MetricsLine& line) { file.lines.push_back(line); });
  return file;
}

inline void write_metrics(Metrics& metrics, const LogEvent& event,
                          const OrderedMap<double>& scalars) {
  metrics.write(event, {.scalars = scalars});
}

inline void write_metrics(const std::string& path, const LogEvent& event,
                          const OrderedMap<double>& scalars) {
  Metrics metrics(path);
  write_metrics(metrics, event, scalars);
}

}  // namespace stepop
