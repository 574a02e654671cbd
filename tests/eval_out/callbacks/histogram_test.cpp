#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "runtime/core/pictures/image_file.h"
#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"
#include "tests/python.h"

namespace stepop {
namespace histogram_test {

nlohmann::json counts(const Looked& looked) {
  return nlohmann::json::parse(looked.text("counts.json"));
}

TEST_CASE("a histogram is numpy's") {
  const auto& data = expected()["histogram"];
  const EvalOutputs outputs{.labels = {{"loss", doubles(data["values"])}}};
  const auto looked = look("histogram", outputs, "{bins: 8}");
  CHECK(counts(*looked)["counts"] == data["counts"]);
  for (size_t i = 0; i < data["edges"].size(); ++i) {
    CHECK(counts(*looked)["edges"][i].get<double>() ==
          doctest::Approx(data["edges"][i].get<double>()));
  }
  for (const char* name : {"mean", "std", "min", "max"}) {
    CHECK(looked->value(name) == doctest::Approx(data[name].get<double>()));
  }
  CHECK(looked->value("non_finite") == 0);
  CHECK(read_image(looked->folder.path("histogram.png")).size(0) == 3);

  const auto cut = counts(*look("histogram", outputs, "{bins: 5, range: [-1, 1]}"));
  CHECK(cut["counts"] == data["counts_in_range"]);
  CHECK(cut["below"].get<int>() + cut["above"].get<int>() == 40 - 29);
}

TEST_CASE("numbers on the edges of bins are counted as numpy counts them") {
  const ScratchFolder folder;
  for (const auto& [bins, low, high] : {std::tuple{10, 0.0, 1.0}, std::tuple{7, -0.3, 0.9},
                                        std::tuple{30, 0.1, 0.7}, std::tuple{3, -1.0, 1.0}}) {
    const std::string numpy = run_python(
        "import sys, json, numpy as np\n"
        "bins, low, high = int(sys.argv[1]), *map(float, sys.argv[2:])\n"
        "values = np.concatenate([np.arange(-100, 101) / 100, np.linspace(low, high, bins + 1)])\n"
        "counts, edges = np.histogram(values, bins, (low, high))\n"
        "print(json.dumps({'values': values.tolist(), 'counts': counts.tolist(),\n"
        "                  'edges': edges.tolist()}))",
        {std::to_string(bins), fmt::format("{}", low), fmt::format("{}", high)});
    const auto data = nlohmann::json::parse(numpy);
    const std::string params = fmt::format("{{bins: {}, range: [{}, {}]}}", bins, low, high);
    const auto found =
        counts(*look("histogram", {.labels = {{"loss", doubles(data["values"])}}}, params.c_str()));
    CAPTURE(params);
    CHECK(found["counts"] == data["counts"]);
    CHECK(found["edges"] == data["edges"]);
  }
}

TEST_CASE("the numbers of an output of any shape and type are counted, in many blocks too") {
  const at::Tensor numbers = at::arange(3'000'000).remainder(10).to(at::kInt).view({-1, 2, 3});
  const auto looked =
      look("histogram", {.outputs = {{"x", numbers}}}, "{of: x, bins: 10, range: [0, 10]}");
  const auto looked_counts = counts(*looked);
  for (const auto& count : looked_counts["counts"]) CHECK(count == 300'000);
  CHECK(looked->value("mean") == doctest::Approx(4.5));
}

TEST_CASE("NaN and infinities are counted beside the bins") {
  const auto looked =
      look("histogram", {.labels = {{"loss", at::tensor({1., NAN, 2., INFINITY})}}});
  CHECK(looked->value("non_finite") == 2);
  CHECK(looked->value("mean") == 1.5);
  CHECK(counts(*looked)["nan"] == 1);
  CHECK(counts(*looked)["infinite"] == 1);
  CHECK(message_of([] {
          look("histogram", {.labels = {{"loss", at::full({3}, NAN)}}});
        }) == "labels/loss has no finite number: 3 are NaN, 0 infinite");
}

TEST_CASE("numbers that are all the same have one bin with all of them") {
  const auto found = counts(*look("histogram", {.labels = {{"loss", at::ones({7})}}}, "{bins: 3}"));
  CHECK(found["counts"] == std::vector<int>{0, 7, 0});
  CHECK(found["edges"].front() == 0.5);
  CHECK(found["edges"].back() == 1.5);
}

TEST_CASE("numbers that are all the same have bins, however large they are") {
  for (const double value : {9007199254740993.0, 1e18, -3e300, 1.7976931348623157e308}) {
    CAPTURE(value);
    const auto looked =
        look("histogram", {.labels = {{"loss", at::full({3}, value, at::kDouble)}}}, "{bins: 4}");
    const auto found = counts(*looked);
    CHECK(found["counts"].get<std::vector<int>>()[2] + found["counts"].get<std::vector<int>>()[1] +
              found["counts"].back().get<int>() ==
          3);
    CHECK(found["edges"].front().get<double>() < found["edges"].back().get<double>());
    CHECK(found["below"] == 0);
    CHECK(found["above"] == 0);
  }
  // So near to one another that no bin could lie between.
  const auto near =
      counts(*look("histogram", {.labels = {{"loss", at::tensor({1e18, 1e18 + 128, 1e18 + 128})}}},
                   "{bins: 9}"));
  int sum = 0;
  for (const auto& count : near["counts"]) sum += count.get<int>();
  CHECK(sum == 3);
}

TEST_CASE("what a histogram cannot count is named") {
  const auto message = [](const char* params) {
    return message_of([&] { look("histogram", {.labels = {{"loss", at::ones({2})}}}, params); });
  };
  CHECK(message("{bins: 0}") == "test.yaml:1: bins: expected 1 or more, found 0");
  CHECK(message("{bins: 1000000}") ==
        "test.yaml:1: bins: expected a number from 1 to 10000, found 1000000");
  CHECK(message("{range: [1, 1]}") ==
        "test.yaml:1: range: expected two numbers, the smaller one first, such as [0, 1], found "
        "[1, 1]");
  CHECK(message("{range: [-.inf, 1]}") ==
        "test.yaml:1: range: expected two numbers, the smaller one first, such as [0, 1], found "
        "[-.inf, 1]");
  CHECK(message_of([] {
          look("histogram", {.labels = {{"loss", at::tensor({-1.7e308, 1.7e308})}}});
        }) ==
        "labels/loss goes from -1.7e+308 to 1.7e+308, too far for bins of equal width; give a "
        "\"range\"");
  CHECK(message("{of: lost}") ==
        "no \"lost\" in FILE, nor in the dataset; the file has: labels/loss; name another key by "
        "\"of\"");
}

}  // namespace histogram_test
}  // namespace stepop
