#include "runtime/report/scalar_summary.h"

#include <cmath>
#include <filesystem>

#include "runtime/log/metrics_scan.h"

namespace stepop {
std::optional<ScalarAt> best_of(const ScalarSummary& summary, Better better) {
  if (better == Better::kUnknown) return std::nullopt;
  return better == Better::kLower ? summary.min : summary.max;
}

OrderedMap<ScalarSummary> summarize_scalars(const std::string& metrics_file) {
  OrderedMap<ScalarSummary> scalars;
  std::error_code failed;
  if (!std::filesystem::exists(metrics_file, failed)) return scalars;
  scan_metrics(metrics_file, [&](const MetricsLine& line) {
    for (const auto& [name, value] : line.values) {
      const ScalarAt here{line.event.step, value};
      ScalarSummary& scalar = scalars[name];
      scalar.last = here;
      if (std::isnan(value)) continue;
      if (!scalar.min || value < scalar.min->value) scalar.min = here;
      if (!scalar.max || value > scalar.max->value) scalar.max = here;
    }
  });
  return scalars;
}

}  // namespace stepop
