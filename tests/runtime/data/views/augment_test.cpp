#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>

#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace augment_test {

const std::string kSource = "dataset: {class: Synthetic, shape: [2, 3, 4], size: 20}";

at::Tensor image_of(const Dataset& dataset, int64_t index, uint64_t seed) {
  Random random(seed);
  return dataset.get(index, random).tensors.at("image");
}

TEST_CASE("without any change the images are the other dataset's, and so are the labels") {
  const auto source = dataset_of("{class: Synthetic, shape: [2, 3, 4], size: 20}");
  const auto dataset = dataset_of("{class: Augment, " + kSource + "}");
  CHECK(dataset->size() == 20);
  CHECK(at::equal(image_of(*dataset, 7, 1), image_of(*source, 7, 1)));
  CHECK(at::equal(dataset->labels("class"), source->labels("class")));
}

TEST_CASE("the change depends on the random generator alone") {
  const auto dataset =
      dataset_of("{class: Augment, shift: 1, flip: true, noise: 0.1, " + kSource + "}");
  CHECK(at::equal(image_of(*dataset, 7, 1), image_of(*dataset, 7, 1)));
  CHECK_FALSE(at::equal(image_of(*dataset, 7, 1), image_of(*dataset, 7, 2)));
  CHECK(unknown_keys_of("{class: Augment, shift: 1, flip: true, noise: 0.1, key: image, " +
                        kSource + "}") == "");
}

TEST_CASE("a shift moves every pixel and repeats the border, a flip mirrors") {
  const at::Tensor image =
      image_of(*dataset_of("{class: Synthetic, shape: [2, 3, 4], size: 20}"), 3, 0);
  const auto shifted = dataset_of("{class: Augment, shift: 1, " + kSource + "}");
  const auto flipped = dataset_of("{class: Augment, flip: true, " + kSource + "}");
  std::vector<bool> seen(9), mirrored(2);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const at::Tensor result = image_of(*shifted, 3, seed);
    int fits = 0;
    for (int64_t down = -1; down <= 1; ++down) {
      for (int64_t right = -1; right <= 1; ++right) {
        bool same = true;
        for (int64_t y = 0; y < 3; ++y) {
          for (int64_t x = 0; x < 4; ++x) {
            const int64_t from_y = std::clamp<int64_t>(y - down, 0, 2);
            const int64_t from_x = std::clamp<int64_t>(x - right, 0, 3);
            same = same && at::equal(result.select(1, y).select(1, x),
                                     image.select(1, from_y).select(1, from_x));
          }
        }
        if (same) {
          ++fits;
          seen[static_cast<size_t>((down + 1) * 3 + right + 1)] = true;
        }
      }
    }
    CHECK(fits == 1);
    const bool is_mirrored = at::equal(image_of(*flipped, 3, seed), image.flip({2}));
    if (!is_mirrored) CHECK(at::equal(image_of(*flipped, 3, seed), image));
    mirrored[is_mirrored ? 1 : 0] = true;
  }
  CHECK(seen == std::vector<bool>(9, true));
  CHECK(mirrored == std::vector<bool>(2, true));
}

TEST_CASE("noise has its deviation and stays within an image's values") {
  const auto dataset =
      dataset_of("{class: Augment, noise: 0.2, dataset: {class: Synthetic, shape: [1, 64, 64]}}");
  const at::Tensor clean = image_of(*dataset_of("{class: Synthetic, shape: [1, 64, 64]}"), 0, 0);
  const at::Tensor noisy = image_of(*dataset, 0, 0);
  CHECK(noisy.abs().max().item<float>() <= 1);
  const double deviation = (noisy - clean).std().item<double>();
  CHECK(deviation > 0.15);
  CHECK(deviation < 0.205);
}

TEST_CASE("views are new images, each changed by itself, and the image stays") {
  const auto source = dataset_of("{class: Synthetic, shape: [3, 8, 8], size: 20}");
  const auto dataset = dataset_of(
      "{class: Augment, views: {one: image, two: image}, augmentations: [{class: "
      "RandomResizedCrop, "
      "size: 4}, RandomHorizontalFlip], dataset: {class: Synthetic, shape: [3, 8, 8], size: 20}}");
  Random random(1), again(1);
  const Example example = dataset->get(7, random);
  CHECK(at::equal(example.tensors.at("image"), image_of(*source, 7, 1)));
  CHECK(example.tensors.at("one").sizes() == at::IntArrayRef{3, 4, 4});
  CHECK(example.tensors.at("two").sizes() == at::IntArrayRef{3, 4, 4});
  CHECK_FALSE(at::equal(example.tensors.at("one"), example.tensors.at("two")));
  CHECK(at::equal(example.tensors.at("two"), dataset->get(7, again).tensors.at("two")));
}

TEST_CASE("a view of nothing, of a name that is taken, or beside other images is refused") {
  const auto message = [](const std::string& keys) {
    return message_of([&] {
      Random random(1);
      dataset_of("{class: Augment, " + keys + ", " + kSource + "}")->get(0, random);
    });
  };
  CHECK(message("views: {one: imag}") ==
        "Augment: nothing under \"imag\", of which views/one is made; there are: image, class");
  CHECK(message("views: {image: image}") ==
        "Augment: \"image\" of views is there already; give the view another name");
  CHECK(message("views: {}").find("views: expected a map such as {one: image, two: image}") !=
        std::string::npos);
  CHECK(message("views: {one: image}, images: [image]")
            .find("images: not with views, which are images alone") != std::string::npos);
}

TEST_CASE("what is no image is refused with its key") {
  const auto dataset = dataset_of("{class: Augment, key: class, " + kSource + "}");
  CHECK(message_of([&] { image_of(*dataset, 0, 0); }) ==
        "Augment: expected a float32 image [C, H, W] under \"class\", found int64 []");
  CHECK(message_of([] {
          dataset_of("{class: Augment, noise: -1, " + kSource + "}");
        }).find("noise: expected 0 or more, found -1") != std::string::npos);
}

}  // namespace augment_test
}  // namespace stepop
