// CorruptedImages gives what DL-Art-School's own code gives: tests/data/corruptions/make.py.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/augmentations/corruptions.h"
#include "runtime/data/dataset.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace corrupted_images_test {

const SafetensorsFile& stored() {
  static const SafetensorsFile file =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/corruptions/values.safetensors");
  return file;
}
const at::Tensor& tensor(const std::string& key) { return stored().tensors.at(key); }
nlohmann::json cases() { return nlohmann::json::parse(stored().metadata.at("cases")); }

double difference(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

void write_picture(const ScratchFolder& folder, const std::string& name) {
  folder.write(name, encode_png(tensor("picture").permute({1, 2, 0}).contiguous()));
}

std::unique_ptr<Dataset> dataset(const ScratchFolder& folder, const std::string& options) {
  return datasets().build(
      test_config(
          fmt::format("train: {{class: CorruptedImages, paths: {}, {}}}", folder / "", options)),
      "train");
}

TEST_CASE("each corruption changes a picture as DL-Art-School's does, with the same draws") {
  for (const auto& one : cases()) {
    if (!one.contains("name")) continue;
    CAPTURE(one.dump());
    Random random(one["seed"].get<uint64_t>());
    CorruptionDraw draw{
        .strength = one["strength"].get<double>(), .blur_scale = 1.5, .random = random};
    const at::Tensor made = corrupted(tensor("part"), one["name"].get<std::string>(), draw);
    CHECK(difference(enlarged(made, draw.reduction), tensor(one["key"].get<std::string>())) < 1e-5);
  }
}

TEST_CASE("a whole example is the one of DL-Art-School's imagefolder") {
  const ScratchFolder folder;
  write_picture(folder, "a.png");
  for (const auto& one : cases()) {
    if (!one.contains("dataset")) continue;
    CAPTURE(one.dump());
    const auto made =
        dataset(folder, one["options"].dump().substr(1, one["options"].dump().size() - 2));
    Random random(one["seed"].get<uint64_t>());
    const Example example = made->get(0, random);
    for (const char* key : {"hq", "lq", "corruption_entropy"}) {
      CAPTURE(key);
      const std::string place = fmt::format("dataset/{}/{}", one["dataset"].get<int>(), key);
      CHECK(difference(example.tensors.at(key), tensor(place)) < 2e-5);
    }
  }
}

TEST_CASE("noise is even, never below the picture, and as strong as its name says") {
  const at::Tensor& part = tensor("part");
  for (const auto& [name, most] :
       {std::pair("noise", 0.5 * 6 / 255), std::pair("noise-5", 5.0 / 255)}) {
    Random random(3);
    CorruptionDraw draw{.strength = 0.5, .random = random};
    const at::Tensor noise = (corrupted(part, name, draw) - part) / most;
    CHECK(noise.min().item<double>() > -1e-4);
    CHECK(noise.max().item<double>() < 1 + 1e-4);
    CHECK(noise.mean().item<double>() == doctest::Approx(0.5).epsilon(0.05));
    CHECK(noise.var().item<double>() == doctest::Approx(1.0 / 12).epsilon(0.1));
  }
}

TEST_CASE("a motion blur keeps the mean of a flat picture, and a weak one changes nothing") {
  Random random(3);
  CorruptionDraw weak{.strength = 0.2, .random = random};
  CHECK(at::equal(corrupted(tensor("part"), "motion_blur", weak), tensor("part")));
  CorruptionDraw strong{.strength = 0.9, .random = random};
  const at::Tensor made = corrupted(tensor("part"), "motion_blur", strong);
  CHECK(difference(made, tensor("part")) > 0.01);
  const at::Tensor flat = at::empty_like(made).fill_(0.25);
  CHECK(difference(corrupted(flat, "motion_blur", strong), flat) < 1e-6);
}

TEST_CASE("a blur fits into a small picture") {
  Random random(3);
  CorruptionDraw draw{.strength = 1, .blur_scale = 4, .random = random};
  const at::Tensor flat = at::full({3, 2, 5}, 0.25);
  CHECK(difference(corrupted(flat, "gaussian_blur", draw), flat) < 1e-6);
}

TEST_CASE("a folder counts as often as its weight says") {
  const ScratchFolder folder;
  write_picture(folder, "one/a.png");
  write_picture(folder, "two/b.png");
  write_picture(folder, "two/ref.jpg");  // the whole image, of which others are parts
  const auto sized = [&](const std::string& weights) {
    const Config config =
        test_config(fmt::format("train: {{class: CorruptedImages, paths: ['{}', '{}']{}}}",
                                folder / "one", folder / "two", weights));
    return datasets().build(config, "train");
  };
  CHECK(sized("")->size() == 2);
  const auto weighted = sized(", weights: [1, 3]");
  CHECK(weighted->size() == 4);
  Random random(1);
  CHECK(weighted->get(3, random).texts.at("path") == (folder / "two/b.png"));
  CHECK(message_of([&] {
          sized(", weights: [1]");
        }).find("train/weights: expected how often each of the 2 folders counts") !=
        std::string::npos);
}

TEST_CASE("what cannot be is said with its place") {
  const ScratchFolder folder;
  write_picture(folder, "a.png");
  const auto message = [&](const std::string& options) {
    return message_of([&] {
      Random random(1);
      dataset(folder, options)->get(0, random);
    });
  };
  const auto says = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  says(
      message("fixed_corruptions: [block_noise]"),
      "train/fixed_corruptions/0: block_noise changes nothing in DL-Art-School either: write none, "
      "or remove it");
  says(message("random_corruptions: [jpg]"),
       "train/random_corruptions/0: no corruption \"jpg\"; there are: jpeg, ");
  says(message("num_corrupts_per_image: 1"),
       "train/num_corrupts_per_image: there are no random_corruptions to choose from");
  says(message("target_size: 30, scale: 4"),
       "train/target_size: expected a multiple of 4, scale times force_multiple, found 30");
  says(message("scale: 4, corrupt_before_downsize_factor: 3"),
       "train/corrupt_before_downsize_factor: expected a divisor of scale, 4, found 3");
  says(message("force_multiple: 64"),
       "a.png: too small: 44 x 44 pixels, and scale times "
       "force_multiple is 64");
}

}  // namespace corrupted_images_test
}  // namespace stepop
