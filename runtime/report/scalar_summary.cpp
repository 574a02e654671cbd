#include "runtime/report/scalar_summary.h"

#include <cmath>
#include <filesystem>

#include "runtime/log/metrics_scan.h"
#include "runtime/run/run_evaluations.h"

namespace stepop {

void ScalarSummary::add(const ScalarAt& here) {
  last = here;
  if (std::isnan(here.value)) return;
  if (!min || here.value < min->value) min = here;
  if (!max || here.value > max->value) max = here;
}

std::optional<ScalarAt> best_of(const ScalarSummary& summary, Better better) {
  if (better == Better::kUnknown) return std::nullopt;
  return better == Better::kLower ? summary.min : summary.max;
}

OrderedMap<ScalarSummary> summarize_scalars(const std::string& metrics_file) {
  OrderedMap<ScalarSummary> scalars;
  std::error_code failed;
  if (!std::filesystem::exists(metrics_file, failed)) return scalars;
  scan_metrics(metrics_file, [&](const MetricsLine& line) {
    for (const auto& [name, value] : line.values) scalars[name].add({line.event.step, value});
  });
  return scalars;
}

void add_unlogged_scalars(const RunDirectory& run, OrderedMap<ScalarSummary>& scalars) {
  OrderedMap<ScalarSummary> unlogged;
  for (const auto& evaluation : find_run_evaluations(run, /*of_trainings=*/false)) {
    for (const auto& [name, value] : scalars_of(evaluation)) {
      if (!scalars.contains(name)) unlogged[name].add({evaluation.step, value});
    }
  }
  for (const auto& [name, scalar] : unlogged) scalars.set(name, scalar);
}

}  // namespace stepop
