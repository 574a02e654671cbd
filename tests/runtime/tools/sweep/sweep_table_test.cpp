#include "runtime/tools/sweep/sweep_table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/scratch_folder.h"

namespace stepop {
namespace sweep_table_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A plan of two learning rates with `seeds` seeds each, in a folder where nothing ran.
SweepPlan plan_of(const ScratchFolder& folder, const std::string& seeds, bool has_over) {
  folder.write("base.yaml", "");
  const SweepFile sweep = read_sweep_file(
      folder.write("s.yaml", std::string("base: base.yaml\n") + (has_over ? "over: [seed]\n" : "") +
                                 "grid: {optimizer/lr: [1e-3, 3e-3], seed: [" + seeds + "]}\n"));
  SweepPlan plan("logs/sweeps/s", "s");
  plan.extend(sweep, std::vector<std::string>(sweep.points.size(), ""));
  return plan;
}

SweepResults results_of(const SweepPlan& plan, const std::vector<double>& best,
                        const std::vector<double>& last) {
  SweepResults results{{"v/accuracy", MetricDirection::kHigher}, {}};
  for (size_t i = 0; i < best.size(); ++i) {
    results.runs.push_back({.run = plan.runs()[i], .folder = "f", .state = "ended", .step = 4});
    if (!std::isnan(best[i])) results.runs.back().best = best[i];
    results.runs.back().last = last[i];
  }
  return results;
}

TEST_CASE("mean and standard deviation are those of Python's module statistics") {
  // statistics.mean and statistics.stdev of [0.5, 0.25, 0.375, 1]
  const Spread spread = spread_of({0.5, 0.25, 0.375, 1});
  CHECK(*spread.mean == doctest::Approx(0.53125));
  CHECK(*spread.deviation == doctest::Approx(0.32874445495957294).epsilon(1e-12));
  CHECK(*spread_of({2}).mean == 2);
  CHECK_FALSE(spread_of({2}).deviation);
  CHECK_FALSE(spread_of({}).mean);
}

TEST_CASE("the table has a row for each point, means over the seeds, the best first") {
  const ScratchFolder folder;
  const SweepPlan plan = plan_of(folder, "0, 1", /*has_over=*/true);
  SweepResults results = results_of(plan, {0.5, 0.75, 0.875, 0.875}, {0.5, 0.5, 0.25, 0.75});
  CHECK(sweep_table_text(plan, results) ==
        "optimizer/lr  runs   best      sd  last      sd\n"
        "       0.003     2  0.875       0   0.5  0.3536\n"
        "       0.001     2  0.625  0.1768   0.5       0\n"
        "best, last: v/accuracy, highest is best\n"
        "means and standard deviations (n - 1) over seed, of the runs that ended\n");
  CHECK(sweep_table_csv(plan, results) ==
        "optimizer/lr,runs,ended,best,best_sd,last,last_sd\n"
        "0.003,2,2,0.875,0.0,0.5,0.3535533905932738\n"
        "0.001,2,2,0.625,0.1767766952966369,0.5,0.0\n");
  results.metric.direction = MetricDirection::kLower;
  CHECK(sweep_table_text(plan, results).find("\n       0.001     2") < 60);
  results.metric.direction = MetricDirection::kUnknown;
  CHECK(sweep_table_text(plan, results).starts_with("optimizer/lr  runs  last      sd\n"));
}

TEST_CASE("a point of which a seed is always NaN has no mean, and comes last") {
  const ScratchFolder folder;
  const SweepPlan plan = plan_of(folder, "0, 1", /*has_over=*/true);
  SweepResults results = results_of(plan, {-0.1, kNan, -0.5, -0.75}, {-0.1, kNan, -0.5, -0.75});
  const auto order = [&] {
    const std::vector<SweepGroup> groups = group_results(plan, results);
    return std::vector<int64_t>{groups[0].runs[0] == 2 ? 1 : 0, std::isnan(*groups[1].best.mean)};
  };
  CHECK(order() == std::vector<int64_t>{1, 1});
  results.metric.direction = MetricDirection::kLower;
  CHECK(order() == std::vector<int64_t>{1, 1});
}

TEST_CASE("runs that did not end are counted apart, and their errors stand below") {
  const ScratchFolder folder;
  const SweepPlan plan = plan_of(folder, "0, 1", /*has_over=*/true);
  SweepResults results = results_of(plan, {0.5, 0.75, kNan, 0.9}, {0.5, 0.5, kNan, 0.9});
  results.runs[1].state = "failed";
  results.runs[1].error = "a NaN";
  results.runs[3].state = "waiting";
  CHECK(sweep_table_text(plan, results) ==
        "optimizer/lr  runs  best  sd  last  sd  not ended\n"
        "       0.001     1   0.5   -   0.5   -  1 failed\n"
        "       0.003     1     -   -   nan   -  1 waiting\n"
        "best, last: v/accuracy, highest is best\n"
        "means and standard deviations (n - 1) over seed, of the runs that ended\n"
        "0002 failed: a NaN\n");
  const auto json = nlohmann::json::parse(sweep_table_json(plan, results));
  CHECK(json["mode"] == "max");
  CHECK(json["table"][0]["values"] == nlohmann::json({{"optimizer/lr", 0.001}}));
  CHECK(json["table"][0]["best"] == 0.5);
  CHECK(json["table"][0]["best_sd"].is_null());
  CHECK(json["table"][1]["last"].is_null());
  CHECK(json["runs"][1]["error"] == "a NaN");
  CHECK(json["runs"][1]["values"] == nlohmann::json({{"optimizer/lr", 0.001}, {"seed", 1}}));
}

TEST_CASE("without `over` each run has a row with its number") {
  const ScratchFolder folder;
  const SweepPlan plan = plan_of(folder, "5", /*has_over=*/false);
  CHECK(sweep_table_text(plan, results_of(plan, {0.5, 0.75}, {0.5, 0.25})) ==
        "run   optimizer/lr  seed  best  last\n"
        "0002         0.003     5  0.75  0.25\n"
        "0001         0.001     5   0.5   0.5\n"
        "best, last: v/accuracy, highest is best\n");
  SweepResults running = results_of(plan, {0.5, 0.75}, {0.5, 0.25});
  running.runs[0].state = "running";
  CHECK(sweep_table_text(plan, running) ==
        "run   optimizer/lr  seed  best  last  not ended\n"
        "0002         0.003     5  0.75  0.25\n"
        "0001         0.001     5   0.5   0.5  running\n"
        "best, last: v/accuracy, highest is best\n");
}

TEST_CASE("the error of a run is the first of its output") {
  CHECK(error_in_output("step 1\nwarning: x\nstepop: a.yaml:3: wrong\nmore\nstepop: b\n") ==
        "a.yaml:3: wrong");
  CHECK(error_in_output("net.cpp: In function\nnet.cpp:3:1: error: expected ;\n") ==
        "net.cpp:3:1: error: expected ;");
  CHECK(error_in_output("step 1\n") == "");
}

}  // namespace sweep_table_test
}  // namespace stepop
