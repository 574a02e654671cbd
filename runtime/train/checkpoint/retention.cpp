#include "runtime/train/checkpoint/retention.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace stepop {

std::vector<int64_t> best_steps(const std::vector<int64_t>& steps, const MetricByStep& values,
                                const Retention& retention) {
  std::vector<int64_t> known;
  if (retention.metric.empty()) return known;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(known), [&](int64_t step) {
    const auto value = values.find(step);
    return value != values.end() && !std::isnan(value->second);
  });
  std::sort(known.begin(), known.end());
  std::stable_sort(known.begin(), known.end(), [&](int64_t a, int64_t b) {
    return retention.mode == Retention::Mode::kMax ? values.at(a) > values.at(b)
                                                   : values.at(a) < values.at(b);
  });
  const auto count = static_cast<size_t>(std::max<int64_t>(retention.keep_best, 1));
  if (known.size() > count) known.resize(count);
  return known;
}

std::vector<int64_t> steps_to_remove(const std::vector<int64_t>& steps, const MetricByStep& values,
                                     const Retention& retention, std::optional<int64_t> latest,
                                     std::optional<int64_t> best,
                                     const std::set<int64_t>& unjudged) {
  if (retention.keep_last <= 0 || steps.empty()) return {};
  const std::vector<int64_t> best_ones = best_steps(steps, values, retention);
  std::set<int64_t> kept(best_ones.begin(), best_ones.end());
  kept.insert(unjudged.begin(), unjudged.end());
  if (latest) kept.insert(*latest);
  if (best) kept.insert(*best);
  const size_t last = std::min(static_cast<size_t>(retention.keep_last), steps.size());
  kept.insert(steps.end() - static_cast<std::ptrdiff_t>(last), steps.end());
  int64_t before = 0;
  for (const int64_t step : steps) {
    if (retention.keep_always && retention.keep_always(before, step)) kept.insert(step);
    before = step;
  }
  std::vector<int64_t> removed;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(removed),
               [&](int64_t step) { return !kept.contains(step); });
  return removed;
}

}  // namespace stepop
