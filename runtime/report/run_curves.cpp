#include "runtime/report/run_curves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "runtime/log/metrics_scan.h"

namespace stepop {
namespace {

constexpr size_t kMostBuckets = 50'000;  // of all curves
constexpr size_t kMostEvaluations = 2'000;

bool is_of_evaluation(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view op = name.substr(slash + 1, name.find('/', slash + 1) - slash - 1);
  return op.find("eval") != std::string_view::npos;
}

void add(const MetricsLine& line, RunCurves& curves) {
  const auto& [step, epoch, samples, seconds] = line.event;
  curves.epochs.add(step, epoch);
  curves.seconds.add(step, seconds);
  curves.samples = samples;
  for (const auto& [name, value] : line.values) {
    ScalarHistory& scalar = curves.scalars[name];
    scalar.curve.add(step, value);
    ScalarSummary& summary = scalar.summary;
    summary.last = {step, value};
    if (!std::isnan(value)) {
      if (!summary.min || value < summary.min->value) summary.min = summary.last;
      if (!summary.max || value > summary.max->value) summary.max = summary.last;
    }
    if (is_of_evaluation(name)) curves.evaluations[step].set(name, value);
  }
  if (curves.evaluations.size() > kMostEvaluations) {
    curves.evaluations.erase(curves.evaluations.begin());
  }
}

}  // namespace

RunCurves read_curves(const std::string& metrics_file) {
  RunCurves curves;
  std::error_code failed;
  if (!std::filesystem::exists(metrics_file, failed)) return curves;
  curves.broken_lines =
      scan_metrics(metrics_file, [&](const MetricsLine& line) { add(line, curves); });
  const size_t buckets =
      std::clamp<size_t>(kMostBuckets / std::max<size_t>(curves.scalars.size(), 1), 50, 1000);
  for (auto& [name, scalar] : curves.scalars) scalar.curve.thin(buckets);
  curves.epochs.thin(200);
  curves.seconds.thin(200);
  return curves;
}

}  // namespace stepop
