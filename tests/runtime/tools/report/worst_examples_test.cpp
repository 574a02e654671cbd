#include "runtime/tools/report/worst_examples.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>

#include "eval_out/write/eval_writer.h"
#include "runtime/core/pictures/image_file.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace worst_examples_test {

WorstExamples worst_of(const EvalOutputs& outputs, int64_t rows, size_t count) {
  const ScratchFolder folder;
  const std::string path = folder / "outputs.h5";
  {
    EvalWriter writer(path, rows);
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < rows; ++i) indices.push_back(100 + i);
    writer.write(outputs, indices);
    writer.finish();
  }
  return find_worst_examples(EvalFile(path), count);
}

TEST_CASE("the greatest losses come first, NaN before all, with what else is one number") {
  const WorstExamples worst = worst_of(
      {.outputs = {{"logits",
                    at::tensor({0.F, 2.F, 1.F, 5.F, 4.F, 4.5F, 0.F, 0.F, 1.F, 3.F, 2.F, 1.F})
                        .reshape({4, 3})},
                   {"class", at::arange(4)},
                   {"caption", std::vector<std::string>{"a", "b", "c", "d"}},
                   {"features", at::zeros({4, 7})}},
       .labels = {{"loss", at::tensor({0.5F, std::nanf(""), 3.F, 0.25F})}}},
      4, 3);
  CHECK(worst.loss == "labels/loss");
  CHECK((worst.keys == std::vector<std::string>{"outputs/caption", "outputs/class",
                                                "largest of outputs/logits"}));
  CHECK(worst.picture_keys.empty());
  REQUIRE(worst.examples.size() == 3);
  CHECK(worst.examples[0].index == 101);
  CHECK(std::isnan(worst.examples[0].loss));
  CHECK((worst.examples[0].values == std::vector<std::string>{"b", "1", "0"}));
  CHECK(worst.examples[1].index == 102);
  CHECK((worst.examples[1].values == std::vector<std::string>{"c", "2", "2"}));
  CHECK(worst.examples[2].index == 100);
}

TEST_CASE("examples of weight 0 have no loss") {
  const WorstExamples worst = worst_of(
      {.labels = {{"loss", {at::tensor({9.F, -1.F, -2.F}), at::tensor({0.F, 1.F, 2.F})}}}}, 3, 3);
  REQUIRE(worst.examples.size() == 2);
  CHECK(worst.examples[0].index == 101);
  CHECK(worst.examples[1].index == 102);
}

TEST_CASE("outputs that are pictures are shown, floats and bytes, channels first and last") {
  const WorstExamples worst =
      worst_of({.outputs = {{"bytes", at::full({2, 16, 16, 1}, 128, at::kByte)},
                            {"floats", at::full({2, 3, 16, 24}, 1.0)}},
                .labels = {{"error", at::tensor({1.F, 2.F})}}},
               2, 5);
  CHECK((worst.picture_keys == std::vector<std::string>{"outputs/bytes", "outputs/floats"}));
  REQUIRE(worst.examples.size() == 2);
  CHECK(worst.examples[0].index == 101);
  const at::Tensor bytes = decode_image(worst.examples[0].pictures[0], "bytes");
  CHECK((bytes.sizes() == at::IntArrayRef{1, 16, 16}));
  CHECK(bytes[0][0][0].item<double>() == doctest::Approx(1.0 / 255));
  const at::Tensor floats = decode_image(worst.examples[0].pictures[1], "floats");
  CHECK((floats.sizes() == at::IntArrayRef{3, 16, 24}));
  CHECK(floats.min().item<double>() == 1);
}

TEST_CASE("without a loss there are none") {
  const WorstExamples worst =
      worst_of({.outputs = {{"loss", at::rand({2})}}, .labels = {{"score", at::rand({2})}}}, 2, 5);
  CHECK(worst.loss.empty());
  CHECK(worst.examples.empty());
}

}  // namespace worst_examples_test
}  // namespace stepop
