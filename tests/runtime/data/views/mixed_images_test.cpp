#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/one_hot.h>
#include <doctest/doctest.h>

#include "tests/dataset_of.h"
#include "tests/message_of.h"

namespace stepop {
namespace mixed_images_test {

const std::string kSource = "dataset: {class: Synthetic, shape: [3, 8, 6], size: 20}";
const std::vector<int64_t> kIndices = {3, 4, 5, 7};

Batch mixed(const std::string& params, uint64_t seed) {
  const auto dataset =
      dataset_of("{class: MixedImages, classes: 10, " + params + ", " + kSource + "}");
  std::vector<Random> randoms;
  for (size_t i = 0; i < kIndices.size(); ++i) randoms.emplace_back(seed + i);
  return load_batch(*dataset, kIndices, randoms);
}

TEST_CASE("MixUp adds the image and the label before in one share") {
  const Batch plain =
      batch_of(*dataset_of("{class: Synthetic, shape: [3, 8, 6], size: 20}"), kIndices);
  const at::Tensor image = plain["image"];
  const at::Tensor label = at::one_hot(plain["class"], 10).to(at::kFloat);
  double least = 1;
  double most = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Batch batch = mixed("cutmix: 0, mixup: 1", seed);
    const double share =
        ((batch["image"] - image.roll(1, 0)) * (image - image.roll(1, 0))).sum().item<double>() /
        (image - image.roll(1, 0)).square().sum().item<double>();
    CHECK(at::allclose(batch["image"], image * share + image.roll(1, 0) * (1 - share), 1e-4, 1e-5));
    CHECK(at::allclose(batch["class"], label * share + label.roll(1, 0) * (1 - share), 1e-4, 1e-5));
    least = std::min(least, share);
    most = std::max(most, share);
  }
  CHECK(least < 0.15);
  CHECK(most > 0.85);
}

TEST_CASE("CutMix pastes a rectangle, and its label has the rectangle's share") {
  const Batch plain =
      batch_of(*dataset_of("{class: Synthetic, shape: [3, 8, 6], size: 20}"), kIndices);
  const at::Tensor image = plain["image"];
  const at::Tensor label = at::one_hot(plain["class"], 10).to(at::kFloat);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Batch batch = mixed("mixup: 0", seed);
    const at::Tensor is_kept = batch["image"].eq(image);
    CHECK(batch["image"].eq(image.roll(1, 0)).logical_or(is_kept).all().item<bool>());
    const double share = is_kept.to(at::kDouble).mean().item<double>();
    CHECK(at::allclose(batch["class"], label * share + label.roll(1, 0) * (1 - share), 1e-4, 1e-5));
  }
}

TEST_CASE("what is mixed follows from the examples' random numbers; one example is not mixed") {
  const Batch batch = mixed("p: 0.9", 7);
  CHECK(at::equal(batch["image"], mixed("p: 0.9", 7)["image"]));
  CHECK_FALSE(at::equal(batch["image"], mixed("p: 0.9", 8)["image"]));
  const Batch never = mixed("p: 0", 7);
  const auto dataset = dataset_of("{class: MixedImages, classes: 10, " + kSource + "}");
  CHECK(dataset->label_keys().empty());
  CHECK_FALSE(dataset->labels("class").defined());
  for (size_t i = 0; i < kIndices.size(); ++i) {
    Random random(7 + i);
    const Example example = dataset->get(kIndices[i], random);
    const auto row = static_cast<int64_t>(i);
    CHECK(at::equal(example.tensors.at("image"), never["image"][row]));
    CHECK(at::equal(example.tensors.at("class"), never["class"][row]));
  }
}

TEST_CASE("what cannot be mixed is named") {
  const auto message = [](const std::string& params) {
    return message_of([&] { mixed(params, 0); });
  };
  CHECK(message("mixup: 0, cutmix: 0") ==
        "test.yaml:1: data/mixup: expected above 0 here or in cutmix: otherwise nothing is mixed, "
        "found 0");
  CHECK(message("image: class") ==
        "MixedImages: expected a float32 image [C, H, W] under \"class\", found int64 [4]");
  CHECK(message_of([] {
          batch_of(*dataset_of("{class: MixedImages, classes: 3, " + kSource + "}"),
                   {0, 1, 2, 3, 4, 5, 6, 7});
        }).find("MixedImages: \"class\" is 0 to ") != std::string::npos);
}

}  // namespace mixed_images_test
}  // namespace stepop
