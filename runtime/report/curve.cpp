#include "runtime/report/curve.h"

#include <algorithm>
#include <cmath>

namespace stepop {
namespace {

constexpr size_t kMostBuckets = 4000;

}  // namespace

void Curve::Bucket::add(const ScalarAt& point) {
  if (!std::isfinite(point.value)) {
    gap = point;
    return;
  }
  if (!low || point.value < low->value) low = point;
  if (!high || point.value > high->value) high = point;
  ++count;
  mean += (point.value - mean) / static_cast<double>(count);
}

void Curve::Bucket::add(const Bucket& other) {
  if (other.gap) gap = other.gap;
  if (other.count == 0) return;
  if (!low || other.low->value < low->value) low = other.low;
  if (!high || other.high->value > high->value) high = other.high;
  count += other.count;
  mean += (other.mean - mean) * static_cast<double>(other.count) / static_cast<double>(count);
}

void Curve::add(int64_t step, double value) {
  ++count_;
  Bucket& bucket = buckets_[step / width_];
  if (width_ == 1) bucket = {};
  bucket.add({step, value});
  if (buckets_.size() > kMostBuckets) halve();
}

void Curve::halve() {
  width_ *= 2;
  std::map<int64_t, Bucket> wider;
  for (const auto& [place, bucket] : buckets_) {
    wider[place / 2].add(bucket);
  }
  buckets_ = std::move(wider);
}

void Curve::thin(size_t buckets) {
  while (buckets_.size() > std::max<size_t>(buckets, 1)) halve();
}

std::vector<ScalarAt> Curve::means() const {
  std::vector<ScalarAt> means;
  for (const auto& [place, bucket] : buckets_) {
    if (bucket.count > 0) means.push_back({place * width_ + width_ / 2, bucket.mean});
  }
  return means;
}

std::vector<ScalarAt> Curve::points() const {
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

}  // namespace stepop
