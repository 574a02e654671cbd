#include <doctest/doctest.h>

#include "runtime/core/measure/tensor_statistics.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace synthetic_test {

TEST_CASE("synthetic examples have the shape, the classes and the number that are asked for") {
  const auto dataset = dataset_of("{class: Synthetic, size: 7, shape: [3, 4, 5], classes: 3}");
  CHECK(dataset->size() == 7);
  const Batch batch = batch_of(*dataset, {0, 1, 2, 3, 6});
  CHECK(describe_tensor(batch["image"]) == "float32 [5, 3, 4, 5]");
  CHECK(values_of<int64_t>(batch["class"]) == std::vector<int64_t>{0, 1, 2, 0, 0});
  CHECK(values_of<int64_t>(dataset->labels("class")) == std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0});
  CHECK(describe_tensor(example_of(*dataset_of("Synthetic"), 999).tensors.at("image")) ==
        "float32 [1, 28, 28]");
  CHECK(unknown_keys_of("{class: Synthetic, size: 2, shape: [1, 2, 2], classes: 2, seed: 1}") ==
        "");
}

TEST_CASE("a synthetic example depends on its index and the seed only") {
  const auto dataset = dataset_of("Synthetic");
  const at::Tensor image = example_of(*dataset, 123).tensors.at("image");
  CHECK(image.equal(
      example_of(*dataset_of("{class: Synthetic, size: 200}"), 123).tensors.at("image")));
  CHECK(image.equal(batch_of(*dataset, {5, 123})["image"][1]));
  CHECK_FALSE(image.equal(example_of(*dataset, 133).tensors.at("image")));
  CHECK_FALSE(
      image.equal(example_of(*dataset_of("{class: Synthetic, seed: 1}"), 123).tensors.at("image")));
}

TEST_CASE("synthetic images fill [-1, 1] and look like their class") {
  const auto dataset = dataset_of("Synthetic");
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < 1000; ++i) indices.push_back(i);
  const at::Tensor images = batch_of(*dataset, indices)["image"].flatten(1);
  CHECK(images.min().item<double>() >= -1);
  CHECK(images.max().item<double>() <= 1);
  // Var of the sum of two uniforms of width 1 is 1/6, their covariance within a class 1/12.
  CHECK(images.var().item<double>() == doctest::Approx(1.0 / 6).epsilon(0.05));
  const auto similarity = [&](int64_t a, int64_t b) {
    return images[a].mul(images[b]).mean().item<double>();
  };
  CHECK(similarity(3, 13) == doctest::Approx(1.0 / 12).epsilon(0.25));
  CHECK(std::abs(similarity(3, 14)) < 0.03);
}

TEST_CASE("wrong numbers for synthetic data are reported at their place") {
  CHECK(message_of([] { dataset_of("{class: Synthetic, size: 0}"); }) ==
        "test.yaml:1: data/size: expected 1 or more, found 0");
  const std::string expected =
      "test.yaml:1: data/shape: expected [C, H, W], each at least 1, of up to 2^30 pixels, found ";
  CHECK(message_of([] { dataset_of("{class: Synthetic, shape: [28, 28]}"); }) ==
        expected + "[28, 28]");
  CHECK(message_of([] { dataset_of("{class: Synthetic, shape: [1, 0, 28]}"); }) ==
        expected + "[1, 0, 28]");
  CHECK(message_of([] { dataset_of("{class: Synthetic, shape: [4294967296, 4294967296, 3]}"); }) ==
        expected + "[4294967296, 4294967296, 3]");
  CHECK(message_of([] { dataset_of("Synthetic")->get(1000, *std::make_unique<Random>(0)); }) ==
        "there is no example 1000: the dataset has 1000");
}

}  // namespace synthetic_test
}  // namespace stepop
