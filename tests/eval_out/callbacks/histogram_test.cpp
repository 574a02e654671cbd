#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include <cmath>

#include "eval_out/callbacks/histogram_picture.h"
#include "runtime/files/image_file.h"
#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"

namespace stepop {
namespace {

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

TEST_CASE("what a histogram cannot count is named") {
  const auto message = [](const char* params) {
    return message_of([&] { look("histogram", {.labels = {{"loss", at::ones({2})}}}, params); });
  };
  CHECK(message("{bins: 0}") == "test.yaml:1: bins: expected 1 or more, found 0");
  CHECK(message("{bins: 1000000}") == "test.yaml:1: bins: expected 10000 or less");
  CHECK(message("{range: [1, 1]}") ==
        "test.yaml:1: range: expected two numbers, the smaller one first, such as [0, 1]");
  CHECK(message("{of: lost}") ==
        "no \"lost\" in FILE, nor in the dataset; the file has: labels/loss; name another key by "
        "\"of\"");
}

TEST_CASE("an axis has round numbers") {
  CHECK((round_ticks(0, 100, 6) == std::vector<double>{0, 20, 40, 60, 80, 100}));
  CHECK((round_ticks(-1.7, 1.9, 7) == std::vector<double>{-1, 0, 1}));
  CHECK((round_ticks(0, 1, 6).size() == 6));
}

}  // namespace
}  // namespace stepop
