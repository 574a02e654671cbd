#include <ATen/TensorOperators.h>
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sin.h>
#include <doctest/doctest.h>

#include "runtime/core/pictures/image_file.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace translation_pairs_test {

/// [channels, height, width] whose values are those of bytes.
at::Tensor waves(int64_t channels, int64_t height, int64_t width, double phase) {
  const at::Tensor line =
      at::arange(channels * height * width, at::kFloat).reshape({channels, height, width});
  return ((at::sin(line / 11 + phase) + 1) * 127.5).round() / 127.5 - 1;
}

std::string png_of(const at::Tensor& image) {
  return encode_png(((image + 1) * 127.5).round().to(at::kByte).permute({1, 2, 0}).contiguous());
}

bool is_close(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 0, 1e-4); }

std::string pairs(const std::string& more) { return "{class: PairedImages, " + more + "}"; }

TEST_CASE("files side by side are cut into input and target, in the order of their names") {
  const ScratchFolder folder;
  const at::Tensor left = waves(3, 12, 10, 0);
  const at::Tensor right = waves(3, 12, 10, 1);
  std::filesystem::create_directories(folder.path("pairs"));
  folder.write("pairs/b.png", png_of(at::cat({left, right}, 2)));
  folder.write("pairs/a.png", png_of(at::cat({right, right}, 2)));
  const std::string source = "folder: " + folder.path("pairs");

  const auto dataset = dataset_of(pairs(source));
  REQUIRE(dataset->size() == 2);
  const Example pair = example_of(*dataset, 1);
  CHECK(pair.texts.at("path") == "b.png");
  CHECK(is_close(pair.tensors.at("input"), left));
  CHECK(is_close(pair.tensors.at("target"), right));
  CHECK(pair.tensors.at("input").is_contiguous());
  const Example back = example_of(*dataset_of(pairs(source + ", direction: BtoA")), 1);
  CHECK(back.tensors.at("input").equal(pair.tensors.at("target")));
  CHECK(back.tensors.at("target").equal(pair.tensors.at("input")));

  // Each half by itself, so that nothing of one is in the other.
  const Example resized = example_of(*dataset_of(pairs(source + ", load_size: 8")), 1);
  // In bytes, as Pillow does it: rounded twice.
  const auto bicubic = [](const at::Tensor& image) {
    return at::_upsample_bicubic2d_aa(image.unsqueeze(0), {8, 8}, false)[0].clamp(-1, 1);
  };
  CHECK(at::allclose(resized.tensors.at("input"), bicubic(left), 0, 1.6 / 127.5));
  CHECK(at::allclose(resized.tensors.at("target"), bicubic(right), 0, 1.6 / 127.5));
  const at::Tensor steps = (resized.tensors.at("input") + 1) * 127.5;
  CHECK(is_close(steps, steps.round()));
  CHECK(example_of(*dataset_of(pairs(source + ", load_size: 8, channels: 1")), 1)
            .tensors.at("input")
            .sizes() == at::IntArrayRef{1, 8, 8});
  const Example grey = example_of(*dataset_of(pairs(source + ", channels: 1")), 1);
  CHECK(grey.tensors.at("input").sizes() == at::IntArrayRef{1, 12, 10});
  const Example alpha = example_of(*dataset_of(pairs(source + ", channels: 4")), 1);
  CHECK((alpha.tensors.at("target")[3] == 1).all().item<bool>());

  folder.write("pairs/c.png", png_of(waves(3, 12, 11, 0)));
  CHECK(message_of([&] {
          batch_of(*dataset_of(pairs(source)), {0, 2});
        }) ==
        "example 2: " + folder.path("pairs/c.png") +
            ": expected two images side by side, of an even width together, found 11 x 12 pixels");
  CHECK(message_of([&] { dataset_of(pairs(source + ", direction: both")); }) ==
        "test.yaml:1: data/direction: expected AtoB or BtoA, found \"both\"");
  folder.write("pairs/d.png", "no image");
  CHECK(message_of([&] {
          batch_of(*dataset_of(pairs(source)), {3});
        }).find("example 3: " + folder.path("pairs/d.png") + ": ") == 0);
}

TEST_CASE("a crop is the same part of both: anywhere, or in the middle") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path("pairs"));
  const at::Tensor both = waves(3, 12, 40, 0);
  folder.write("pairs/a.png", png_of(both));
  const std::string source = "folder: " + folder.path("pairs");
  const Example middle = example_of(*dataset_of(pairs(source + ", crop: 8, random: false")), 0);
  CHECK(is_close(middle.tensors.at("input"), both.narrow(1, 2, 8).narrow(2, 6, 8)));
  CHECK(is_close(middle.tensors.at("target"), both.narrow(1, 2, 8).narrow(2, 26, 8)));
  const auto dataset = dataset_of(pairs(source + ", crop: 8"));
  int64_t places = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Random random(seed);
    const Example part = dataset->get(0, random);
    int64_t found = 0;
    for (int64_t y = 0; y <= 4; ++y) {
      for (int64_t x = 0; x <= 12; ++x) {
        found += is_close(part.tensors.at("input"), both.narrow(1, y, 8).narrow(2, x, 8)) &&
                 is_close(part.tensors.at("target"), both.narrow(1, y, 8).narrow(2, 20 + x, 8));
      }
    }
    CHECK(found == 1);
    places += !part.tensors.at("input").equal(middle.tensors.at("input"));
  }
  CHECK(places > 4);
  CHECK(message_of([&] {
          example_of(*dataset_of(pairs(source + ", crop: 13")), 0);
        }).find("pairs/a.png: too small for a part of 13 x 13 pixels: ") != std::string::npos);
}

TEST_CASE("two folders hold input and target under the same names") {
  const ScratchFolder folder;
  for (const char* name : {"maps/more", "photos/more"}) {
    std::filesystem::create_directories(folder.path(name));
  }
  const at::Tensor map = waves(1, 6, 7, 0);
  const at::Tensor photo = waves(3, 6, 7, 1);
  folder.write("maps/more/a.png", png_of(map));
  folder.write("photos/more/a.png", png_of(photo));
  const std::string source = "input: " + folder.path("maps") + ", target: " + folder.path("photos");
  const Example pair = example_of(*dataset_of(pairs(source)), 0);
  CHECK(pair.texts.at("path") == "more/a.png");
  CHECK(is_close(pair.tensors.at("input"), map));
  CHECK(is_close(pair.tensors.at("target"), photo));

  folder.write("photos/b.png", png_of(photo));
  CHECK(message_of([&] { dataset_of(pairs(source)); }) ==
        "test.yaml:1: data/input: " + folder.path("maps/b.png") +
            ": there is no such file, and there is one of that name in target");
  folder.write("maps/b.png", png_of(waves(3, 5, 5, 0)));
  CHECK(message_of([&] { example_of(*dataset_of(pairs(source)), 0); }) ==
        folder.path("maps/b.png") + " and " + folder.path("photos/b.png") +
            ": expected two images of one size, found float32 [3, 5, 5] and float32 [3, 6, 7]; "
            "\"load_size: 256\" makes them so");
  CHECK(example_of(*dataset_of(pairs(source + ", load_size: 4")), 0).tensors.at("target").sizes() ==
        at::IntArrayRef{3, 4, 4});
  CHECK(message_of([&] {
          batch_of(*dataset_of(pairs(source + ", load_size: 4")), {0, 1});
        }).find("\"load_size: 256\" and \"channels: 3\"") != std::string::npos);
  CHECK(message_of([&] {
          dataset_of(pairs("input: " + folder.path("maps")));
        }).find("data/target") != std::string::npos);
  CHECK(message_of([] { dataset_of("{class: PairedImages}"); }) ==
        "test.yaml:1: data: expected where the images are: folder, input and target, input and "
        "mask, hq, or "
        "dataset");
  CHECK(unknown_keys_of(pairs(source + ", load_sise: 4")).find("\"data/load_size\"") !=
        std::string::npos);
}

TEST_CASE("pairs of another dataset are cut, swapped and augmented") {
  const std::string facades = "dataset: {class: Facades, examples: 4, size: 32}";
  const auto source = dataset_of("{class: Facades, examples: 4, size: 32}");
  const Example plain = example_of(*source, 2);
  const auto dataset = dataset_of(pairs(facades + ", direction: BtoA"));
  REQUIRE(dataset->size() == 4);
  CHECK(example_of(*dataset, 2).tensors.at("input").equal(plain.tensors.at("target")));
  CHECK(example_of(*dataset, 2).tensors.at("target").equal(plain.tensors.at("input")));
  CHECK(example_of(*dataset_of(pairs(facades + ", crop: 24")), 0).tensors.at("input").sizes() ==
        at::IntArrayRef{3, 24, 24});
  // With `key` it is a source of large images, as any other dataset.
  CHECK(example_of(*dataset_of(pairs(facades + ", key: target")), 0).tensors.at("lq").sizes() ==
        at::IntArrayRef{3, 16, 16});
}

TEST_CASE("augmentations of the input leave the target untouched, bit for bit") {
  const std::string facades = "dataset: {class: Facades, examples: 4, size: 32}";
  const std::string changes =
      "{both: {h_flip_chance: 0}, input: {colorjitter_chance: 1, gaussnoise_chance: 1, "
      "motionblur_chance: 1, randgamma_chance: 1, grayscale_chance: 1, compression_chance: 1}}";
  const auto plain = dataset_of(pairs(facades + ", crop: 20"));
  const auto dataset = dataset_of(pairs(facades + ", crop: 20, augmentations: " + changes));
  for (int64_t i = 0; i < 4; ++i) {
    CHECK(example_of(*dataset, i)
              .tensors.at("target")
              .equal(example_of(*plain, i).tensors.at("target")));
    CHECK_FALSE(example_of(*dataset, i)
                    .tensors.at("input")
                    .equal(example_of(*plain, i).tensors.at("input")));
    CHECK(example_of(*dataset, i)
              .tensors.at("input")
              .equal(example_of(*dataset, i).tensors.at("input")));
  }
}

TEST_CASE(
    "augmentations depend on the example's random numbers alone, and their keys are checked") {
  const std::string facades = "dataset: {class: Facades, examples: 4, size: 32}";
  const std::string changes =
      "augmentations: {both: {rot90_chance: 0.5, elastic_transform_chance: 0.5, "
      "elastic_transform_alpha: 200, elastic_transform_sigma: 4}, input: {gaussnoise_chance: "
      "0.5}, target: {}}";
  const auto dataset = dataset_of(pairs(facades + ", crop: 24, " + changes));
  std::vector<at::Tensor> seen;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Random once(seed);
    Random again(seed);
    const Example example = dataset->get(1, once);
    CHECK(example.tensors.at("input").equal(dataset->get(1, again).tensors.at("input")));
    CHECK(example.tensors.at("target").is_contiguous());
    for (const auto& other : seen) CHECK_FALSE(other.equal(example.tensors.at("target")));
    seen.push_back(example.tensors.at("target"));
  }
  // None without the key; NectarGAN's defaults with an empty one: half are mirrored.
  const auto plain = dataset_of(pairs(facades));
  const auto mirrored = dataset_of(pairs(facades + ", augmentations: {}"));
  int64_t times = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    times += !mirrored->get(0, random).tensors.at("target").equal(
        example_of(*plain, 0).tensors.at("target"));
  }
  CHECK(times > 8);
  CHECK(times < 32);
  CHECK(unknown_keys_of(pairs(facades + ", augmentations: {both: {h_flip: 1}}"))
            .find("\"data/augmentations/both/h_flip") != std::string::npos);
  CHECK(unknown_keys_of(pairs(facades + ", " + changes)).empty());
  CHECK(message_of([&] { dataset_of(pairs(facades + ", augmentations: true")); }) ==
        "test.yaml:1: data/augmentations: expected a map of chances and strengths, found true");
  CHECK(message_of([&] {
          dataset_of(pairs(facades + ", key: target, " + changes));
        }).find("data/augmentations/both/elastic_transform_chance: needs two images of one size") !=
        std::string::npos);
  // Large and small images are mirrored alike, and noise comes on the small one alone.
  const auto scaled = dataset_of(
      pairs(facades +
            ", key: target, augmentations: {both: {v_flip_chance: 1, h_flip_chance: 0}, input: "
            "{gaussnoise_chance: 1}}"));
  const Example whole = example_of(*dataset_of(pairs(facades + ", key: target")), 0);
  const Example turned = example_of(*scaled, 0);
  CHECK(turned.tensors.at("hq").equal(whole.tensors.at("hq").flip({1})));
  CHECK_FALSE(turned.tensors.at("lq").equal(whole.tensors.at("lq").flip({1})));
}

}  // namespace translation_pairs_test
}  // namespace stepop
