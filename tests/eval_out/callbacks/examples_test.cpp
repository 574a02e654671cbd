#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "runtime/core/pictures/image_file.h"
#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"

namespace stepop {
namespace examples_test {

/// The indices of a set in examples.csv, in their order.
std::vector<int> indices_of(const Looked& looked, const std::string& set) {
  std::vector<int> found;
  std::istringstream lines(looked.text("examples.csv"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(set + ",")) found.push_back(std::stoi(line.substr(set.size() + 1)));
  }
  return found;
}

const TensorData kData({{"image", at::zeros({100, 1, 8, 8})}});
const EvalOutputs kLosses{.labels = {{"loss", at::arange(10).mul(7).remainder(10).to(at::kFloat)}}};
// 0 7 4 1 8 5 2 9 6 3

TEST_CASE("the best, the worst and random examples are chosen by a label") {
  const auto looked = look("examples", kLosses, "{count: 3}", kData);
  CHECK((indices_of(*looked, "best") == std::vector<int>{0, 3, 6}));
  CHECK((indices_of(*looked, "worst") == std::vector<int>{7, 4, 1}));
  const auto random = indices_of(*looked, "random");
  CHECK(std::set<int>(random.begin(), random.end()).size() == 3);
  CHECK(looked->value("best") == 0);
  CHECK(looked->value("worst") == 9);
  for (const char* name : {"best.png", "worst.png", "random.png"}) {
    CHECK(read_image(looked->folder.path(name)).size(0) == 3);
  }
  const auto most = look("examples", kLosses, "{count: 3, mode: max}", kData);
  CHECK((indices_of(*most, "best") == std::vector<int>{7, 4, 1}));
}

TEST_CASE("rows of weight 0 are neither the best nor the worst, nor in a histogram") {
  const EvalOutputs outputs{.labels = {{"loss",
                                        {at::tensor({0.0F, 3.0F, 9.0F, 5.0F, 0.0F}),
                                         at::tensor({0.0F, 2.0F, 0.0F, 1.0F, 0.0F})}}}};
  const auto looked = look("examples", outputs, "{count: 4}", kData);
  CHECK((indices_of(*looked, "best") == std::vector<int>{1, 3}));
  CHECK((indices_of(*looked, "worst") == std::vector<int>{3, 1}));
  CHECK((indices_of(*looked, "random") == std::vector<int>{1, 3}));
  const auto histogram = look("histogram", outputs);
  CHECK(histogram->value("min") == 3);
  CHECK(histogram->value("max") == 5);
  CHECK(histogram->value("mean") == 4);
  const EvalOutputs nothing{.labels = {{"loss", {at::zeros({2}), at::zeros({2})}}}};
  for (const char* callback : {"examples", "histogram"}) {
    CHECK(message_of([&] { look(callback, nothing, "{}", kData); }) ==
          "labels/loss has the weight 0 in every row");
  }
}

TEST_CASE("random examples depend on the seed alone, and each has the same chance") {
  const auto random = [](const std::string& seed) {
    return indices_of(*look("examples", kLosses, ("{count: 2, seed: " + seed + "}").c_str(), kData),
                      "random");
  };
  CHECK((random("5") == random("5")));
  std::vector<int> drawn(10, 0);
  for (int seed = 0; seed < 60; ++seed) {
    for (const int index : random(std::to_string(seed))) ++drawn[static_cast<size_t>(index)];
  }
  for (const int count : drawn) CHECK(count > 2);  // 12 on average
}

TEST_CASE("fewer examples than asked for are all of them, and equal ones keep their order") {
  const auto looked =
      look("examples", {.labels = {{"loss", at::ones({4})}}}, "{}", kData, {5, 6, 7, 90});
  CHECK((indices_of(*looked, "best") == std::vector<int>{5, 6, 7, 90}));
  CHECK((indices_of(*looked, "worst") == std::vector<int>{5, 6, 7, 90}));
}

TEST_CASE("NaN is worse than any number, and never the best") {
  const EvalOutputs outputs{.labels = {{"loss", at::tensor({1., NAN, 3., NAN, INFINITY})}}};
  for (const bool is_max : {false, true}) {
    const auto looked =
        look("examples", outputs, is_max ? "{count: 4, mode: max}" : "{count: 4}", kData);
    CHECK((indices_of(*looked, "worst") ==
           (is_max ? std::vector<int>{1, 3, 0, 2} : std::vector<int>{1, 3, 4, 2})));
    CHECK((indices_of(*looked, "best") ==
           (is_max ? std::vector<int>{4, 2, 0} : std::vector<int>{0, 2, 4})));
    CHECK(std::isnan(looked->value("worst")));
    CHECK(looked->value("best") == (is_max ? INFINITY : 1));
    CHECK(looked->text("examples.csv").find("\nworst,1,nan\n") != std::string::npos);
  }
}

TEST_CASE("the header of the table is a cell of CSV") {
  const auto looked =
      look("examples", {.labels = {{"a,\"b\"", at::ones({1})}}}, "{by: 'a,\"b\"'}", kData);
  CHECK(looked->text("examples.csv").starts_with("set,index,\"a,\"\"b\"\"\"\n"));
}

TEST_CASE("images of the outputs come before those of the dataset, of any size") {
  const EvalOutputs outputs{.outputs = {{"image", at::zeros({1, 3, 600, 300}, at::kByte)}},
                            .labels = {{"loss", at::ones({1})}}};
  const at::Tensor picture = read_image(look("examples", outputs)->folder.path("best.png"));
  CHECK(picture.size(1) > 256);
  CHECK(picture.size(1) < 350);
}

TEST_CASE("images of any number of channels are shown as in logs") {
  // Two channels, 0 and 1, become a black and a white tile, each of 8 x 8 pixels.
  const at::Tensor two = at::stack({at::full({8, 8}, -1.0), at::full({8, 8}, 1.0)}).unsqueeze(0);
  const at::Tensor transparent = at::full({1, 4, 16, 16}, -1.0);
  for (const auto& image : {two, transparent}) {
    const EvalOutputs outputs{.outputs = {{"image", image.to(at::kFloat)}},
                              .labels = {{"loss", at::ones({1})}}};
    const at::Tensor png = read_image(look("examples", outputs)->folder.path("best.png"));
    // The thumbnail begins behind a gap of 14 pixels, 8 times as large.
    const auto at = [&](int64_t y, int64_t x) {
      return std::lround((png[0][14 + y][14 + x].item<double>() + 1) * 127.5);
    };
    const bool has_alpha = image.size(1) == 4;
    CHECK(at(4, 4) == (has_alpha ? 153 : 0));
    CHECK(at(4, 20) == (has_alpha ? 204 : 0));
    CHECK(at(4, 127) == (has_alpha ? 204 : 255));
  }
  CHECK(message_of([] {
          look("examples", {.outputs = {{"image", at::zeros({1, 8, 8, 3})}},
                            .labels = {{"loss", at::ones({1})}}});
        }) ==
        "images to show are floating-point [B, C, H, W] in [-1, 1], found float32 [1, 8, 8, 3]");
}

TEST_CASE("what examples misses is named") {
  const auto message = [](const EvalOutputs& outputs, const char* params = "{}",
                          const TensorData& data = kData) {
    return message_of([&] { look("examples", outputs, params, data); });
  };
  CHECK(message(kLosses, "{mode: best}") ==
        "test.yaml:1: mode: expected min or max, found \"best\"");
  CHECK(message(kLosses, "{count: 500}") ==
        "test.yaml:1: count: expected a number from 1 to 400, found 500");
  CHECK(message(kLosses, "{by: lost}") ==
        "no \"lost\" in FILE, nor in the dataset (its examples have: image, index); the file has: "
        "labels/loss; name another key by \"by\"");
  CHECK(message(kLosses, "{}", TensorData()) ==
        "no \"image\" in FILE, nor in the dataset; the file has: labels/loss; name another key by "
        "\"image\"");
  CHECK(message({.labels = {{"loss", at::ones({2, 2})}}}) ==
        "labels/loss must hold one number an example to sort them by, found [2]");
  CHECK(message({.labels = {{"loss", at::full({2}, NAN)}}}) ==
        "labels/loss has a NaN in each of its 2 rows");
  CHECK(message({.outputs = {{"x", at::ones({2, 2, 2})}}, .labels = {{"loss", at::ones({2})}}},
                "{show: [x]}") ==
        "outputs/x must hold one number an example, or a vector, to be shown; found [2, 2]");
}

}  // namespace examples_test
}  // namespace stepop
