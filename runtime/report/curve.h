#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/report/scalar_summary.h"

namespace stepop {

/// A scalar over the steps, kept in constant memory: of a long run each bucket of steps keeps its
/// lowest and its highest point, so that no spike is lost.
class Curve {
 public:
  /// Points may come in any order; of one step the last one counts while buckets hold one step.
  void add(int64_t step, double value);

  /// Keeps at most `buckets` buckets, two points each.
  void thin(size_t buckets);

  bool is_thinned() const { return width_ > 1; }
  int64_t count() const { return count_; }

  /// Of a thinned curve the mean of each bucket, at its middle: what a smoothed line goes through.
  std::vector<ScalarAt> means() const;

  /// By step. What is NaN or infinite is a point too: a gap.
  std::vector<ScalarAt> points() const;

 private:
  struct Bucket {
    std::optional<ScalarAt> low;
    std::optional<ScalarAt> high;
    std::optional<ScalarAt> gap;
    double mean = 0;  ///< Of those that are finite.
    int64_t count = 0;

    void add(const ScalarAt& point);
    void add(const Bucket& other);
  };

  void halve();

  int64_t width_ = 1;  ///< Steps of a bucket.
  int64_t count_ = 0;
  std::map<int64_t, Bucket> buckets_;
};

}  // namespace stepop
