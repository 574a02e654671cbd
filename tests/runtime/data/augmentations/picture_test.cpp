#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/image_grid.h"
#include "tests/dataset_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace picture_test {

/// A pair, and what each augmentation makes of it: its input and, to the right, its target.
std::string picture_of_all() {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"no augmentation", ""},
      {"h_flip", "both: {h_flip_chance: 1}"},
      {"v_flip", "both: {h_flip_chance: 0, v_flip_chance: 1}"},
      {"rot90", "both: {h_flip_chance: 0, rot90_chance: 1}"},
      {"elastic_transform",
       "both: {h_flip_chance: 0, elastic_transform_chance: 1, elastic_transform_alpha: 300, "
       "elastic_transform_sigma: 8}"},
      {"optical_distortion",
       "both: {h_flip_chance: 0, optical_distortion_chance: 1, optical_distortion_min: 0.6, "
       "optical_distortion_max: 0.6}"},
      {"coarse_dropout",
       "both: {h_flip_chance: 0, coarse_dropout_chance: 1, coarse_dropout_holes_min: 2}"},
      {"colorjitter", "both: {h_flip_chance: 0}, input: {colorjitter_chance: 1}"},
      {"gaussnoise", "both: {h_flip_chance: 0}, input: {gaussnoise_chance: 1}"},
      {"motionblur", "both: {h_flip_chance: 0}, input: {motionblur_chance: 1}"},
      {"randgamma",
       "both: {h_flip_chance: 0}, input: {randgamma_chance: 1, randgamma_min: 200, "
       "randgamma_max: 200}"},
      {"grayscale", "both: {h_flip_chance: 0}, input: {grayscale_chance: 1}"},
      {"compression",
       "both: {h_flip_chance: 0}, input: {compression_chance: 1, compression_quality_min: 5, "
       "compression_quality_max: 5}"},
  };
  std::vector<CaptionedImage> images;
  for (const auto& [name, change] : changes) {
    const auto dataset = dataset_of(
        "{class: PairedImages, direction: BtoA, dataset: {class: Facades, size: 96, examples: 3}" +
        (change.empty() ? "}" : ", augmentations: {" + change + "}}"));
    Random random(1);
    const Example pair = dataset->get(2, random);
    const at::Tensor both = at::cat({pair.tensors.at("input"), pair.tensors.at("target")}, 2);
    images.push_back({.image = thumbnail(both.unsqueeze(0)), .lines = {name}});
  }
  return captioned_grid(images);
}

/// The same pair, and what each augmentation of a list makes of it; colours change on the left
/// alone.
std::string picture_of_list() {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"RandomHorizontalFlip", "p: 1"},
      {"RandomResizedCrop", "size: 128, scale: [0.2, 0.5]"},
      {"RandomAffine", "degrees: 30, scale: [0.7, 1], shear: 10"},
      {"RandomPerspective", "p: 1"},
      {"ElasticTransform", ""},
      {"OpticalDistortion", "strength: [0.6, 0.6]"},
      {"ColorJitter", "brightness: 0.5, contrast: 0.5, saturation: 0.5, hue: 0.3, only: [input]"},
      {"RandomGrayscale", "p: 1, only: [input]"},
      {"GaussianBlur", "kernel_size: 9, sigma: [3, 3], only: [input]"},
      {"GaussianNoise", "sigma: [0.2, 0.2], only: [input]"},
      {"MotionBlur", "limit: 13, only: [input]"},
      {"RandomGamma", "gamma: [2.5, 2.5], only: [input]"},
      {"JPEG", "quality: [4, 4], only: [input]"},
      {"CoarseDropout", "holes: [2, 2], only: [input]"},
      {"RandomErasing", "p: 1, scale: [0.2, 0.3], value: random, only: [input]"},
      {"RandAugment", "magnitude: 20"},
  };
  std::vector<CaptionedImage> images;
  for (const auto& [name, params] : changes) {
    const auto dataset = dataset_of(fmt::format(
        "{{class: Augment, images: [input, target], augmentations: [{{class: {}, {}}}], dataset: "
        "{{class: PairedImages, direction: BtoA, dataset: {{class: Facades, size: 128, examples: "
        "3}}}}}}",
        name, params.empty() ? "p: 1" : params));
    Random random(2);
    const Example pair = dataset->get(2, random);
    const at::Tensor both = at::cat({pair.tensors.at("input"), pair.tensors.at("target")}, 2);
    images.push_back({.image = thumbnail(both.unsqueeze(0)), .lines = {name}});
  }
  return captioned_grid(images);
}

void check_picture(const std::string& name, const std::string& drawn) {
  const std::string path = STEPOP_SOURCE_DIR "/runtime/data/augmentations/" + name;
  // After a change that is meant: STEPOP_WRITE_PICTURE=1 build/stepop_tests -tc="the README's*"
  if (std::getenv("STEPOP_WRITE_PICTURE") != nullptr) write_bytes(path, drawn);
  const at::Tensor stored = read_image(path);
  const at::Tensor now = decode_image(drawn, "what was drawn");
  REQUIRE(stored.sizes() == now.sizes());
  // Other processors and versions of libjpeg round otherwise.
  CHECK((stored - now).abs().mean().item<double>() < 0.01);
}

TEST_CASE("the README's picture shows what each augmentation does") {
  check_picture("augmentations.png", picture_of_all());
}

TEST_CASE("the README's second picture shows what each augmentation of a list does") {
  check_picture("list.png", picture_of_list());
}

}  // namespace picture_test
}  // namespace stepop
