#include "runtime/tools/report/run_curves.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>

#include "runtime/core/log/metrics_file.h"

namespace stepop {
namespace {

constexpr size_t kMostBuckets = 4000;         // for each curve
constexpr size_t kMostBucketsOfAll = 50'000;  // for all curves
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

void ScalarSummary::add(const ScalarAt& here) {
  last = here;
  if (std::isnan(here.value)) return;
  if (!min || here.value < min->value) min = here;
  if (!max || here.value > max->value) max = here;
}

std::optional<ScalarAt> best_of(const ScalarSummary& summary, MetricDirection direction) {
  if (direction == MetricDirection::kUnknown) return std::nullopt;
  return direction == MetricDirection::kLower ? summary.min : summary.max;
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
  for (const auto& evaluation : finished_evaluations(run, /*of_trainings=*/false)) {
    for (const auto& [name, value] : scalars_of(evaluation)) {
      if (!scalars.contains(name)) unlogged[name].add({evaluation.step, value});
    }
  }
  for (const auto& [name, scalar] : unlogged) scalars.set(name, scalar);
}

void ScalarCurve::Bucket::add(const ScalarAt& point) {
  if (!std::isfinite(point.value)) {
    gap = point;
    return;
  }
  if (!low || point.value < low->value) low = point;
  if (!high || point.value > high->value) high = point;
  ++count;
  mean += (point.value - mean) / static_cast<double>(count);
}

void ScalarCurve::Bucket::add(const Bucket& other) {
  if (other.gap) gap = other.gap;
  if (other.count == 0) return;
  if (!low || other.low->value < low->value) low = other.low;
  if (!high || other.high->value > high->value) high = other.high;
  count += other.count;
  mean += (other.mean - mean) * static_cast<double>(other.count) / static_cast<double>(count);
}

void ScalarCurve::add(int64_t step, double value) {
  ++count_;
  Bucket& bucket = buckets_[step / width_];
  if (width_ == 1) bucket = {};
  bucket.add({step, value});
  if (buckets_.size() > kMostBuckets) halve();
}

void ScalarCurve::halve() {
  width_ *= 2;
  std::map<int64_t, Bucket> wider;
  for (const auto& [place, bucket] : buckets_) {
    wider[place / 2].add(bucket);
  }
  buckets_ = std::move(wider);
}

void ScalarCurve::thin(size_t buckets) {
  while (buckets_.size() > std::max<size_t>(buckets, 1)) halve();
}

std::vector<ScalarAt> ScalarCurve::means() const {
  std::vector<ScalarAt> means;
  for (const auto& [place, bucket] : buckets_) {
    if (bucket.count > 0) means.push_back({place * width_ + width_ / 2, bucket.mean});
  }
  return means;
}

std::vector<ScalarAt> ScalarCurve::points() const {
  std::vector<ScalarAt> points;
  for (const auto& [place, bucket] : buckets_) {
    const size_t first = points.size();
    if (bucket.low) points.push_back(*bucket.low);
    if (bucket.high && bucket.high->step != bucket.low->step) points.push_back(*bucket.high);
    if (bucket.gap) points.push_back(*bucket.gap);
    std::sort(points.begin() + static_cast<std::ptrdiff_t>(first), points.end(),
              [](const ScalarAt& a, const ScalarAt& b) { return a.step < b.step; });
  }
  return points;
}

RunCurves read_curves(const std::string& metrics_file, const std::string& eval_op, size_t runs) {
  RunCurves curves;
  std::error_code failed;
  if (!std::filesystem::exists(metrics_file, failed)) return curves;
  curves.broken_lines = scan_metrics(
      metrics_file, [&](const MetricsLine& line) { add(line, eval_op + "/", curves); });
  const size_t buckets = std::clamp<size_t>(
      kMostBucketsOfAll / std::max<size_t>(curves.scalars.size() * runs, 1), 50, 1000);
  for (auto& [name, scalar] : curves.scalars) scalar.curve.thin(buckets);
  curves.epochs.thin(200);
  curves.seconds.thin(200);
  return curves;
}

}  // namespace stepop
