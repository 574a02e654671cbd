#include "runtime/tools/sweep/sweep_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace sweep_file_test {

/// A sweep file in a folder with a config `base.yaml`.
SweepFile read(const ScratchFolder& folder, const std::string& text) {
  folder.write("base.yaml", "seed: 1\n");
  return read_sweep_file(folder.write("lr.yaml", text));
}

std::vector<std::string> points(const std::string& text) {
  const ScratchFolder folder;
  std::vector<std::string> points;
  for (const auto& point : read(folder, "base: base.yaml\n" + text).points) {
    points.push_back(point_text(values_of(point)));
  }
  return points;
}

using Points = std::vector<std::string>;

TEST_CASE("a grid has every combination, a list each entry, and both together the product") {
  CHECK(points("grid: {optimizer/lr: [1e-3, 3e-3], seed: [0, 1]}") ==
        Points{"optimizer/lr=0.001 seed=0", "optimizer/lr=0.001 seed=1",
               "optimizer/lr=0.003 seed=0", "optimizer/lr=0.003 seed=1"});
  CHECK(points("list: [{model/hidden: [64]}, {model/hidden: [128, 64], a: x}]") ==
        Points{"'model/hidden=[64]'", "'model/hidden=[128, 64]' a=x"});
  CHECK(points("list: [{a: 1}, {a: 2}]\ngrid: {seed: [0, 1]}") ==
        Points{"a=1 seed=0", "a=1 seed=1", "a=2 seed=0", "a=2 seed=1"});
  // The same point twice is one run.
  CHECK(points("grid: {a: [1, 2, 1]}") == Points{"a=1", "a=2"});
}

TEST_CASE("random values are the same each time, for more runs and beside other keys, too") {
  const std::string lr = "optimizer/lr: {log_uniform: [1e-5, 1e-2]}";
  const Points three = points("random: {runs: 3, seed: 1, values: {" + lr + "}}");
  REQUIRE(three.size() == 3);
  const Points five = points("random: {runs: 5, seed: 1, values: {" + lr + "}}");
  CHECK(Points(five.begin(), five.begin() + 3) == three);
  const Points beside =
      points("random: {runs: 3, seed: 1, values: {a: {choice: [16, 32]}, " + lr + "}}");
  for (size_t i = 0; i < 3; ++i) CHECK(beside[i].ends_with(" " + three[i]));
  CHECK(points("random: {runs: 3, seed: 2, values: {" + lr + "}}") != three);
  // With each value of the grid.
  CHECK(points("random: {runs: 3, values: {" + lr + "}}\ngrid: {seed: [0, 1]}").size() == 6);
}

TEST_CASE("random values have the distribution that is asked for") {
  const ScratchFolder folder;
  const SweepFile sweep = read(folder, R"(
base: base.yaml
random:
  runs: 4000
  values:
    log: {log_uniform: [1e-4, 1]}
    even: {uniform: [-1, 3]}
    whole: {integer: [1, 4]}
    one: {choice: [16, adam]}
)");
  double log_sum = 0;
  double even_sum = 0;
  std::vector<int> whole(5);
  int adam = 0;
  for (const auto& point : sweep.points) {
    const Value::Map values = values_of(point);
    const double log = values.at("log").as_float();
    CHECK_MESSAGE((log >= 1e-4 && log <= 1), log);
    log_sum += std::log10(log);
    const double even = values.at("even").as_float();
    CHECK_MESSAGE((even >= -1 && even <= 3), even);
    even_sum += even;
    ++whole.at(static_cast<size_t>(values.at("whole").as_int()));
    if (values.at("one").is_text()) ++adam;
  }
  const auto n = static_cast<double>(sweep.points.size());
  // Five standard errors: 4 / sqrt(12) / sqrt(n), sqrt(n / 4 * 3 / 4), sqrt(n / 4).
  CHECK(std::abs(log_sum / n + 2) < 0.1);
  CHECK(std::abs(even_sum / n - 1) < 0.1);
  CHECK(whole[0] == 0);
  for (int i = 1; i <= 4; ++i) CHECK(std::abs(whole[static_cast<size_t>(i)] - 1000) < 140);
  CHECK(std::abs(adam - 2000) < 160);
  CHECK(sweep.sampled == std::set<std::string>{"log", "even", "whole"});
}

TEST_CASE("the base is relative to the sweep file, the name is its own, and references stay") {
  const ScratchFolder folder;
  folder.write("configs/base.yaml", "");
  const std::string path = folder.write("configs/lr_search.yaml",
                                        "base: [base.yaml]\nover: seed\njobs: 3\nmode: min\n"
                                        "metric: loss\ngrid: {seed: [0], a: [\"{batch_size}\"]}\n");
  const SweepFile sweep = read_sweep_file(path);
  CHECK(sweep.name == "lr_search");
  CHECK(sweep.base == std::vector<std::string>{folder.path("configs/base.yaml")});
  CHECK(sweep.over == std::vector<std::string>{"seed"});
  CHECK(sweep.jobs == 3);
  CHECK(sweep.metric == "loss");
  CHECK(sweep.mode == "min");
  CHECK(sweep.points[0][1].value == Value("{batch_size}"));
  CHECK(sweep.points[0][1].value.origin().text() == path + ":6");
}

TEST_CASE("each value is tried once; one stands for drawn numbers and for seeds") {
  const ScratchFolder folder;
  const SweepFile sweep = read(folder,
                               "base: base.yaml\nover: [seed]\n"
                               "random: {runs: 2, values: {lr: {uniform: [0, 1]}}}\n"
                               "grid: {hidden: [[1], [2]], size: [8, 16, 32], seed: [0, 1, 2]}\n");
  std::vector<std::string> tried;
  for (const size_t i : points_with_all_values(sweep)) {
    Value::Map values = values_of(sweep.points[i]);
    values.erase("lr");
    tried.push_back(point_text(values));
  }
  CHECK(tried == Points{"'hidden=[1]' size=8 seed=0", "'hidden=[1]' size=16 seed=0",
                        "'hidden=[1]' size=32 seed=0", "'hidden=[2]' size=8 seed=0"});
}

TEST_CASE("what is wrong in a sweep file is said with its place") {
  const ScratchFolder folder;
  const std::string path = folder.path("lr.yaml");
  const auto message = [&](const std::string& text) {
    std::string error = message_of([&] { read(folder, text); });
    for (size_t at; (at = error.find(path)) != std::string::npos;)
      error.replace(at, path.size(), "F");
    return error;
  };
  const std::string base = "base: base.yaml\n";
  const std::string grid = "grid: {a: [1]}\n";
  CHECK(message(base) ==
        "F: nothing varies: give a grid, a list or random values, as in  grid: {optimizer/lr: "
        "[1e-3, 3e-3]}");
  CHECK(message(grid) == "F:1: base: missing: the configs that the runs begin with");
  CHECK(message("iterator: Classifier\nbatch_size: 4\n") ==
        "F: the config of a training, which a sweep begins with: write a file with  base: "
        "[lr.yaml]  and  grid: {optimizer/lr: [1e-3, 3e-3]}");
  CHECK(message("base: none.yaml\n" + grid) ==
        "F:1: base: " + folder.path("none.yaml") + ": no such file");
  CHECK(message(base + "gird: {a: [1]}\n") == "F:2: unknown key \"gird\": did you mean \"grid\"?");
  CHECK(message(base + "set: {seed: 1}\ngrid: {a: [1]}\n") ==
        "F:2: unknown key \"set\": a sweep has base, grid, list, random, over, jobs, metric, mode, "
        "name; a value that all its runs have is a list of one, as in grid: {seed: [1]}");
  CHECK(message(base + "grid: {a: 1}\n") == "F:2: grid/a: expected a list of values, found 1");
  CHECK(message(base + "grid: {optimizer: {lr: [1]}}\n") ==
        "F:2: grid/optimizer: expected a list of values, found a map; a key below another one is "
        "written as a path: optimizer/lr: [1e-3, 3e-3]");
  CHECK(message(base + "list: [3]\n") ==
        "F:2: list: expected a map of keys and values, such as {model/hidden: [64]}, found 3");
  CHECK(message(base + "list: [{a: 1}]\n" + grid) ==
        "F:3: a: given values here and at F:2; keep one");
  CHECK(message(base + "over: sed\ngrid: {seed: [1], a: [1]}\n") ==
        "F:2: over: \"sed\" has no values in this sweep; there are seed, a");
  CHECK(message(base + grid + "mode: up\n") == "F:3: mode: expected max or min, found \"up\"");
  CHECK(message(base + grid + "jobs: 0\n") == "F:3: jobs: expected 1 or more, found 0");
  CHECK(message(base + grid + "name: a/b\n") ==
        "F:3: name: \"a/b\" cannot be the name of a folder");
  CHECK(message(base + "random: {values: {a: {uniform: [0, 1]}}}\n") ==
        "F:2: random/runs: missing: how many runs with random values?");
  const auto random = [&](const std::string& values) {
    return message(base + "random: {runs: 2, values: {a: " + values + "}}\n");
  };
  CHECK(random("{uniform: [1, 0]}") ==
        "F:2: random/values/a: uniform: expected two numbers, first the smaller one, as in [0, "
        "0.5]");
  CHECK(random("{log_uniform: [0, 1]}") ==
        "F:2: random/values/a: log_uniform: expected two numbers above 0, as in [1e-5, 1e-2]");
  CHECK(random("{integer: [0, 1.5]}") ==
        "F:2: random/values/a: integer: expected two whole numbers, as in [1, 8]");
  CHECK(random("{choice: 3}") ==
        "F:2: random/values/a: choice: expected a list of values, found 3");
  CHECK(random("{normal: [0, 1]}") ==
        "F:2: random/values/a: expected one of {uniform: [a, b]}, {log_uniform: [a, b]}, {integer: "
        "[a, b]} and {choice: [...]}, found \"normal\"");
  CHECK(message(base + "grid: {a: [" + [] {
          std::string numbers;
          for (int i = 0; i < 101; ++i) numbers += std::to_string(i) + ",";
          return numbers + "], b: [" + numbers + "]";
        }() + "}\n") == "F:2: grid: more than 10000 runs");
}

}  // namespace sweep_file_test
}  // namespace stepop
