#include "runtime/report/run_curves.h"

#include <algorithm>
#include <filesystem>

#include "runtime/log/metrics_scan.h"

namespace stepop {
namespace {

constexpr size_t kMostBucketsOfAll = 50'000;  // of all curves
constexpr size_t kMostPoints = 2'000;

void add(const MetricsLine& line, const std::string& evaluations, RunCurves& curves) {
  const auto& [step, epoch, samples, seconds] = line.event;
  curves.epochs.add(step, epoch);
  curves.seconds.add(step, seconds);
  curves.samples = samples;
  for (const auto& [name, value] : line.values) {
    ScalarHistory& scalar = curves.scalars[name];
    scalar.curve.add(step, value);
    scalar.summary.add({step, value});
    if (name.starts_with(evaluations)) curves.evaluations[step].set(name, value);
  }
  if (curves.evaluations.size() > kMostPoints) {
    curves.evaluations.erase(curves.evaluations.begin());
  }
}

}  // namespace

RunCurves read_curves(const std::string& metrics_file, const std::string& eval_op) {
  RunCurves curves;
  std::error_code failed;
  if (!std::filesystem::exists(metrics_file, failed)) return curves;
  curves.broken_lines = scan_metrics(
      metrics_file, [&](const MetricsLine& line) { add(line, eval_op + "/", curves); });
  const size_t buckets =
      std::clamp<size_t>(kMostBucketsOfAll / std::max<size_t>(curves.scalars.size(), 1), 50, 1000);
  for (auto& [name, scalar] : curves.scalars) scalar.curve.thin(buckets);
  curves.epochs.thin(200);
  curves.seconds.thin(200);
  return curves;
}

}  // namespace stepop
