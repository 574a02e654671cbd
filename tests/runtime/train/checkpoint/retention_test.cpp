#include "runtime/train/checkpoint/retention.h"

#include <doctest/doctest.h>

#include <limits>

namespace stepop {
namespace retention_test {

using Steps = std::vector<int64_t>;

const Steps kSteps = {10, 20, 30, 40, 50};
const MetricByStep kValues = {{10, 0.5}, {20, 0.9}, {30, 0.9}, {40, 0.7}};

Retention keep(int64_t last) {
  Retention retention;
  retention.keep_last = last;
  return retention;
}

Retention keep(int64_t last, int64_t best, Retention::Mode mode = Retention::Mode::kMax) {
  Retention retention = keep(last);
  retention.keep_best = best;
  retention.metric = "accuracy";
  retention.mode = mode;
  return retention;
}

Steps removed(const Retention& retention, const MetricByStep& values = kValues,
              std::optional<int64_t> latest = std::nullopt,
              std::optional<int64_t> best = std::nullopt) {
  return steps_to_remove(kSteps, values, retention, latest, best);
}

TEST_CASE("without a number of last ones every checkpoint stays") {
  CHECK(removed({}).empty());
  CHECK(removed(keep(0, 1)).empty());
}

TEST_CASE("the last ones stay") {
  CHECK(removed(keep(1)) == Steps{10, 20, 30, 40});
  CHECK(removed(keep(2)) == Steps{10, 20, 30});
  CHECK(removed(keep(5)).empty());
  CHECK(removed(keep(99)).empty());
  CHECK(steps_to_remove({}, kValues, keep(1), std::nullopt, std::nullopt).empty());
  CHECK(steps_to_remove({7}, kValues, keep(1), std::nullopt, std::nullopt).empty());
}

TEST_CASE("the best ones stay, of equal ones the earlier") {
  CHECK(removed(keep(1, 1)) == Steps{10, 30, 40});
  CHECK(removed(keep(1, 2)) == Steps{10, 40});
  CHECK(removed(keep(1, 9)).empty());
  CHECK(removed(keep(1, 1, Retention::Mode::kMin)) == Steps{20, 30, 40});
  CHECK(best_steps(kSteps, kValues, keep(1, 3)) == Steps{20, 30, 40});
  CHECK(best_steps(kSteps, kValues, keep(1, 3, Retention::Mode::kMin)) == Steps{10, 40, 20});
}

TEST_CASE("a checkpoint whose metric is unknown or NaN is never the best") {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  CHECK(removed(keep(1, 1), {{10, kNaN}, {30, 0.1}}) == Steps{10, 20, 40});
  CHECK(removed(keep(1, 2, Retention::Mode::kMin), {{10, kNaN}, {20, kNaN}}) ==
        Steps{10, 20, 30, 40});
  CHECK(best_steps(kSteps, {{60, 1}}, keep(1, 1)).empty());  // no longer there
  CHECK(best_steps(kSteps, kValues, keep(1)).empty());       // no metric is asked for
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(best_steps(kSteps, {{10, 3}, {20, -kInfinity}}, keep(1, 1)) == Steps{10});
}

TEST_CASE("a checkpoint stays whose evaluation ended without the metric") {
  const auto gone = steps_to_remove(kSteps, kValues, keep(1, 1), std::nullopt, std::nullopt, {10});
  CHECK(gone == Steps{30, 40});
}

TEST_CASE("what latest and best point at stays, whatever the values say") {
  CHECK(removed(keep(1), {}, 20, 30) == Steps{10, 40});
  CHECK(removed(keep(1, 1), kValues, std::nullopt, 10) == Steps{30, 40});
}

TEST_CASE("the first checkpoint of each period stays for good") {
  Retention retention = keep(1);
  retention.keep_always = [](int64_t before, int64_t step) { return step / 25 > before / 25; };
  CHECK(removed(retention) == Steps{10, 20, 40});  // 30 is the first after 25
  // The others gone, the same ones stay.
  CHECK(steps_to_remove({30, 50, 60, 70, 80, 90}, {}, retention, 90, std::nullopt) ==
        Steps{60, 70});
}

TEST_CASE("sweeping after every checkpoint leaves what sweeping once leaves") {
  Retention retention = keep(2, 2);
  retention.keep_always = [](int64_t before, int64_t step) { return step / 7 > before / 7; };
  const auto value = [](int64_t step) { return static_cast<double>(step * 37 % 101); };
  Steps swept;
  Steps all;
  MetricByStep values;
  for (int64_t step = 1; step <= 60; ++step) {
    swept.push_back(step);
    all.push_back(step);
    values[step] = value(step);
    for (const int64_t gone : steps_to_remove(swept, values, retention, step, std::nullopt)) {
      std::erase(swept, gone);
    }
  }
  for (const int64_t gone : steps_to_remove(all, values, retention, 60, std::nullopt)) {
    std::erase(all, gone);
  }
  CHECK(swept == all);
}

}  // namespace retention_test
}  // namespace stepop
