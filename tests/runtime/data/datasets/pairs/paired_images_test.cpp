#include <ATen/TensorOperators.h>
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/sin.h>
#include <doctest/doctest.h>

#include "runtime/core/pictures/image_file.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace paired_images_test {

/// The bytes of an image [C, H, W] in [-1, 1].
std::string png_of(const at::Tensor& image) {
  return encode_png(((image + 1) * 127.5).round().to(at::kByte).permute({1, 2, 0}).contiguous());
}

/// `hq/a.png` and `hq/more/b.png` of 13 x 10 pixels.
void write_images(const ScratchFolder& folder) {
  const at::Tensor waves = at::sin(at::arange(3 * 13 * 10, at::kFloat).reshape({3, 13, 10}) / 7);
  std::filesystem::create_directories(folder.path("hq/more"));
  folder.write("hq/a.png", png_of(waves));
  folder.write("hq/more/b.png", png_of(at::flip(waves, {1})));
}

std::string of(const ScratchFolder& folder, const std::string& more) {
  return "{class: PairedImages, hq: " + folder.path("hq") + more + "}";
}

TEST_CASE("a pair is an image, cut to a multiple, and its bicubic reduction") {
  const ScratchFolder folder;
  write_images(folder);
  const auto dataset = dataset_of(of(folder, ", scale: 2"));
  REQUIRE(dataset->size() == 2);
  const Example pair = example_of(*dataset, 1);
  CHECK(pair.texts.at("path") == "more/b.png");
  const at::Tensor& large = pair.tensors.at("hq");
  CHECK(large.sizes() == at::IntArrayRef{3, 12, 10});
  CHECK(
      at::allclose(pair.tensors.at("lq"),
                   at::_upsample_bicubic2d_aa(large.unsqueeze(0), {6, 5}, false)[0].clamp(-1, 1)));
  CHECK(unknown_keys_of(of(folder, ", scal: 2")).find("\"data/scal\"") != std::string::npos);
}

TEST_CASE("small images of their own are taken, and must fit") {
  const ScratchFolder folder;
  write_images(folder);
  std::filesystem::create_directories(folder.path("lq/more"));
  const at::Tensor small = at::sin(at::arange(3 * 6 * 5, at::kFloat).reshape({3, 6, 5}));
  folder.write("lq/a.png", png_of(small));
  const std::string lq = ", lq: " + folder.path("lq");
  CHECK(message_of([&] {
          dataset_of(of(folder, lq));
        }).find("lq/more/b.png: there is no such file, and there is one of that name in hq") !=
        std::string::npos);
  folder.write("lq/more/b.png", png_of(at::flip(small, {1, 2})));
  const auto dataset = dataset_of(of(folder, lq));
  CHECK(at::allclose(example_of(*dataset, 0).tensors.at("lq"), small, 0, 1.0 / 127));
  const auto wrong = dataset_of(of(folder, lq + ", scale: 3"));
  CHECK(message_of([&] {
          example_of(*wrong, 0);
        }).find("expected a size of 4 x 3, a part of 3 of ") != std::string::npos);
}

TEST_CASE("parts, mirror images and turns are the same in both sizes") {
  const ScratchFolder folder;
  write_images(folder);
  const auto whole = dataset_of(of(folder, ""));
  const Example pair = example_of(*whole, 0);
  const auto middle = dataset_of(of(folder, ", crop: 6, random: false"));
  const Example part = example_of(*middle, 0);
  CHECK(at::equal(part.tensors.at("hq"), pair.tensors.at("hq").narrow(1, 2, 6).narrow(2, 2, 6)));
  CHECK(at::equal(part.tensors.at("lq"), pair.tensors.at("lq").narrow(1, 1, 3).narrow(2, 1, 3)));

  const auto changed = dataset_of(of(folder, ", crop: 6, flip: true, rotate: true"));
  bool differs = false;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    Random random(seed);
    const Example each = changed->get(0, random);
    const at::Tensor& large = each.tensors.at("hq");
    CHECK(large.sizes() == at::IntArrayRef{3, 6, 6});
    // Their means agree where the same part was taken; borders of the reduction see beyond it.
    CHECK(std::abs((large.mean() - each.tensors.at("lq").mean()).item<double>()) < 0.1);
    differs = differs || !at::equal(large, part.tensors.at("hq"));
  }
  CHECK(differs);
  CHECK(message_of([&] {
          dataset_of(of(folder, ", crop: 5"));
        }).find("crop: expected a multiple of scale, 2, found 5") != std::string::npos);
  const auto large = dataset_of(of(folder, ", crop: 100"));
  CHECK(message_of([&] { example_of(*large, 0); }).find("too small for a part of 100 x 100") !=
        std::string::npos);
}

TEST_CASE("the large images are those of another dataset") {
  const std::string figures = "dataset: {class: Figures, size: 32, examples: 5}";
  const auto dataset = dataset_of("{class: PairedImages, key: target, " + figures + "}");
  REQUIRE(dataset->size() == 5);
  const Example pair = example_of(*dataset, 3);
  const auto source = dataset_of("{class: Figures, size: 32, examples: 5}");
  const at::Tensor large = example_of(*source, 3).tensors.at("target");
  CHECK(at::equal(pair.tensors.at("hq"), large));
  CHECK(at::allclose(
      pair.tensors.at("lq"),
      at::_upsample_bicubic2d_aa(large.unsqueeze(0), {16, 16}, false)[0].clamp(-1, 1)));
  CHECK(pair.tensors.size() == 2);
  const auto part = dataset_of("{class: PairedImages, key: target, crop: 8, " + figures + "}");
  CHECK(example_of(*part, 3).tensors.at("lq").sizes() == at::IntArrayRef{3, 4, 4});

  CHECK(message_of([&] { example_of(*dataset_of("{class: PairedImages, " + figures + "}"), 0); }) ==
        "PairedImages: expected a float32 image [C, H, W] under \"image\", found none; the dataset "
        "has: stickman, appearance, target, person");
  CHECK(message_of([&] { dataset_of("{class: PairedImages, hq: x, " + figures + "}"); })
            .find("data: expected one of folder, input and target, input and mask, hq, or dataset, "
                  "found hq and "
                  "dataset") != std::string::npos);
  CHECK(unknown_keys_of("{class: PairedImages, channels: 3, key: target, " + figures + "}")
            .find("\"data/channels\"") != std::string::npos);
}

}  // namespace paired_images_test
}  // namespace stepop
