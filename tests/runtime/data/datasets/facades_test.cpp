#include <ATen/TensorOperators.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/stack.h>
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "runtime/core/pictures/image_file.h"
#include "runtime/data/datasets/facade.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace facades_test {

/// The share of pixels of a label map that have exactly one of the twelve colours.
double share_of_labels(const at::Tensor& map) {
  const at::Tensor bytes = ((map + 1) * 127.5).round().to(at::kByte).permute({1, 2, 0});
  const auto values = values_of<uint8_t>(bytes.contiguous());
  size_t known = 0;
  for (size_t i = 0; i < values.size(); i += 3) {
    for (size_t kind = 0; kind < kFacadeClasses; ++kind) {
      known += label_colour(static_cast<FacadeClass>(kind)) ==
               std::array<uint8_t, 3>{values[i], values[i + 1], values[i + 2]};
    }
  }
  return static_cast<double>(known) / static_cast<double>(values.size() / 3);
}

TEST_CASE("a facade is a map in the colours of twelve classes, and its rendering") {
  const auto dataset = dataset_of("{class: Facades, size: 128, examples: 3}");
  REQUIRE(dataset->size() == 3);
  for (int64_t i = 0; i < 3; ++i) {
    const Example example = example_of(*dataset, i);
    CHECK(example.tensors.size() == 2);
    for (const char* key : {"input", "target"}) {
      CAPTURE(key);
      const at::Tensor& image = example.tensors.at(key);
      CHECK(image.sizes() == at::IntArrayRef{3, 128, 128});
      CHECK((image.abs() <= 1).all().item<bool>());
    }
    // All but the edges, which are anti-aliased.
    CHECK(share_of_labels(example.tensors.at("input")) > 0.6);
    CHECK(share_of_labels(example.tensors.at("target")) < 0.05);
    CHECK(example.tensors.at("input").equal(example_of(*dataset, i).tensors.at("input")));
    CHECK(example.tensors.at("target").equal(example_of(*dataset, i).tensors.at("target")));
  }
  CHECK(message_of([&] { example_of(*dataset, 3); }) == "there is no example 3: the dataset has 3");
}

TEST_CASE(
    "the mask of a facade has the class of each pixel whose colour in the map is that of a class") {
  const auto dataset = dataset_of("{class: Facades, size: 96, examples: 3, mask: true}");
  for (int64_t i = 0; i < 3; ++i) {
    const Example example = example_of(*dataset, i);
    const at::Tensor& mask = example.tensors.at("mask");
    CHECK((mask.scalar_type() == at::kLong));
    REQUIRE(mask.sizes() == at::IntArrayRef{96, 96});
    const at::Tensor map = ((example.tensors.at("input") + 1) * 127.5).round().to(at::kLong);
    int64_t compared = 0;
    for (int64_t kind = 0; kind < static_cast<int64_t>(kFacadeClasses); ++kind) {
      const auto [red, green, blue] = label_colour(static_cast<FacadeClass>(kind));
      const at::Tensor is_colour =
          map[0].eq(red).logical_and(map[1].eq(green)).logical_and(map[2].eq(blue));
      CHECK(mask.masked_select(is_colour).eq(kind).all().item<bool>());
      compared += is_colour.sum().item<int64_t>();
    }
    CHECK(compared > 96 * 96 / 2);
  }
}

TEST_CASE("seed and offset choose the buildings") {
  const auto image = [](const std::string& more, int64_t index) {
    return example_of(*dataset_of("{class: Facades" + more + "}"), index).tensors.at("target");
  };
  CHECK(image("", 7).equal(image(", offset: 5", 2)));
  CHECK_FALSE(image("", 7).equal(image("", 2)));
  CHECK_FALSE(image("", 7).equal(image(", seed: 1", 7)));
  CHECK(image("", 0).sizes() == at::IntArrayRef{3, 64, 64});
}

TEST_CASE("the best constant image is far from the renderings") {
  const auto dataset = dataset_of("{class: Facades, size: 64, examples: 48}");
  std::vector<at::Tensor> targets;
  for (int64_t i = 0; i < 48; ++i) targets.push_back(example_of(*dataset, i).tensors.at("target"));
  const at::Tensor images = at::stack(targets);
  const at::Tensor best = images.mean(0, /*keepdim=*/true).expand_as(images);
  // In [-1, 1] the peak is 2.
  const double psnr = 10 * std::log10(4 / at::mse_loss(images, best).item<double>());
  CHECK(psnr < 16);
}

TEST_CASE("a size that no facade fits is refused") {
  CHECK(message_of([] {
          dataset_of("{class: Facades, size: 8}");
        }).find("test.yaml:1: data/size: ") != std::string::npos);
  CHECK(unknown_keys_of("{class: Facades, first: 3}").find("\"data/first\"") != std::string::npos);
}

}  // namespace facades_test
}  // namespace stepop
