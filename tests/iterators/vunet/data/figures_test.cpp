#include "iterators/vunet/data/figures.h"

#include <ATen/ops/empty.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "runtime/core/pictures/image_file.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop::vunet {
namespace figures_test {

/// A checksum of an image's bytes (FNV-1a).
uint64_t checksum_of(const at::Tensor& image) {
  std::string bytes;
  for (const float value : values_of<float>(image)) bytes += static_cast<char>(to_byte(value));
  return seed_of(bytes);
}

TEST_CASE("an example is one person in two poses, with the stick figure of the target") {
  const auto dataset = dataset_of("{class: Figures, examples: 30, num_people: 7}");
  const auto& figures = dynamic_cast<const Figures&>(*dataset);
  REQUIRE(dataset->size() == 30);
  for (int64_t i = 0; i < 30; ++i) {
    const Example example = example_of(*dataset, i);
    CHECK(example.tensors.size() == 4);
    CHECK((figures.appearance_of(i) == figures.appearance_of(i % 7)));
    CHECK_FALSE((figures.pose_of(i) == figures.appearance_pose_of(i)));
    const auto drawn = [&](const Pose& pose) {
      return draw_figure(figures.appearance_of(i), pose, 64);
    };
    CHECK(example.tensors.at("target").equal(drawn(figures.pose_of(i))));
    CHECK(example.tensors.at("appearance").equal(drawn(figures.appearance_pose_of(i))));
    const Joints joints = joints_of(figures.pose_of(i), 64);
    CHECK(example.tensors.at("stickman")
              .equal(draw_stickman(joints, 64, {.line_width = 2, .joint_radius = 1})));
    CHECK(example.tensors.at("person").item<int64_t>() == i % 7);
  }
  CHECK(message_of([&] { example_of(*dataset, 30); }) ==
        "there is no example 30: the dataset has 30");
}

TEST_CASE("a batch holds the examples") {
  const auto dataset = dataset_of("{class: Figures, size: 33, examples: 5, num_people: 3}");
  const Batch batch = batch_of(*dataset, {4, 0, 4});
  CHECK(batch["stickman"].sizes() == at::IntArrayRef({3, 3, 33, 33}));
  CHECK((batch["person"].scalar_type() == at::kLong));
  CHECK(batch.indices() == std::vector<int64_t>{4, 0, 4});
  for (const char* key : {"stickman", "appearance", "target", "person"}) {
    CAPTURE(key);
    CHECK(batch[key][0].equal(example_of(*dataset, 4).tensors.at(key)));
    CHECK(batch[key][1].equal(example_of(*dataset, 0).tensors.at(key)));
    CHECK(batch[key][2].equal(batch[key][0]));
  }
  CHECK(values_of<int64_t>(dataset->labels("person")) == std::vector<int64_t>{0, 1, 2, 0, 1});
  CHECK_FALSE(dataset->labels("target").defined());
}

TEST_CASE("the same seed gives the same pixels on every machine") {
  // Noted when the drawing was made; they change only when it is changed on purpose.
  struct Noted {
    std::string config;
    int64_t index;
    uint64_t stickman;
    uint64_t appearance;
    uint64_t target;
  };
  const std::vector<Noted> all = {
      {"{class: Figures}", 0, 8493530036872735834U, 2192523960062898306U, 7045825796704141359U},
      {"{class: Figures}", 9999, 16982383164817931760U, 8026358974771961530U, 355839801969060619U},
      {"{class: Figures, size: 256, seed: 7, offset: 1000000, line_width: 4, joint_radius: 3}", 123,
       9183581605483029185U, 5235894596817389870U, 14498379203051193648U},
      {"{class: Figures, size: 100, seed: 9223372036854775807, num_people: 3}", 5,
       120569947295119969U, 2989006560468606675U, 15958681973779183819U},
  };
  for (const Noted& noted : all) {
    CAPTURE(noted.config);
    const auto dataset = dataset_of(noted.config);
    const Example example = example_of(*dataset, noted.index);
    CHECK(checksum_of(example.tensors.at("stickman")) == noted.stickman);
    CHECK(checksum_of(example.tensors.at("appearance")) == noted.appearance);
    CHECK(checksum_of(example.tensors.at("target")) == noted.target);
  }
}

/// Appearance, stick figure and target of the first eight examples, uint8 [3 * 64, 8 * 64, 3].
at::Tensor picture_of_first_examples() {
  const auto dataset = dataset_of("{class: Figures}");
  at::Tensor picture = at::empty({3 * 64, 8 * 64, 3}, at::kByte);
  auto* bytes = picture.mutable_data_ptr<uint8_t>();
  const std::vector<std::string> keys = {"appearance", "stickman", "target"};
  for (int64_t i = 0; i < 8; ++i) {
    const Example example = example_of(*dataset, i);
    for (int64_t k = 0; k < 3; ++k) {
      const auto values =
          values_of<float>(example.tensors.at(keys[static_cast<size_t>(k)]).permute({1, 2, 0}));
      for (size_t v = 0; v < values.size(); ++v) {
        const auto row = k * 64 + static_cast<int64_t>(v) / (3 * 64);
        const auto byte = i * 3 * 64 + static_cast<int64_t>(v) % (3 * 64);
        bytes[row * 8 * 64 * 3 + byte] = to_byte(values[v]);
      }
    }
  }
  return picture;
}

TEST_CASE("the README's picture shows the first examples") {
  const std::string path = STEPOP_SOURCE_DIR "/iterators/vunet/data/figures.png";
  const at::Tensor drawn = picture_of_first_examples();
  // After a change that is meant: STEPOP_WRITE_PICTURE=1 build/stepop_tests -tc="the README's*"
  if (std::getenv("STEPOP_WRITE_PICTURE") != nullptr) write_bytes(path, encode_png(drawn));
  const auto stored = values_of<float>(read_image(path).permute({1, 2, 0}));
  const auto bytes = values_of<uint8_t>(drawn);
  REQUIRE(stored.size() == bytes.size());
  size_t different = 0;
  for (size_t i = 0; i < bytes.size(); ++i) different += to_byte(stored[i]) != bytes[i] ? 1 : 0;
  CHECK(different == 0);
}

TEST_CASE("what an example is drawn with changes nothing in it") {
  const auto dataset = dataset_of("{class: Figures}");
  Random one(1);
  Random other(2);
  const Example a = dataset->get(9999, one);
  const Example b = dataset->get(9999, other);
  CHECK(a.tensors.at("target").equal(b.tensors.at("target")));
}

TEST_CASE("an offset holds people and poses out, another seed changes all of them") {
  const auto names = [](const std::string& more) {
    const auto dataset = dataset_of("{class: Figures, examples: 40, num_people: 10" + more + "}");
    const auto& figures = dynamic_cast<const Figures&>(*dataset);
    std::set<uint64_t> all;
    for (int64_t i = 0; i < 40; ++i) {
      all.insert(checksum_of(draw_figure(figures.appearance_of(i), Pose(), 64)));
      all.insert(checksum_of(draw_stickman(joints_of(figures.pose_of(i), 64), 64)));
      all.insert(checksum_of(draw_stickman(joints_of(figures.appearance_pose_of(i), 64), 64)));
    }
    return all;
  };
  std::set<uint64_t> all;
  for (const char* more : {"", ", offset: 40", ", seed: 1", ", seed: 1, offset: 1000000"}) {
    CAPTURE(more);
    const auto some = names(more);
    CHECK(some.size() == 10 + 40 + 40);
    const size_t before = all.size();
    all.insert(some.begin(), some.end());
    CHECK(all.size() == before + some.size());
  }
  const auto held_out = dataset_of("{class: Figures, examples: 4, num_people: 2, offset: 40}");
  CHECK(values_of<int64_t>(held_out->labels("person")) == std::vector<int64_t>{40, 41, 40, 41});
}

TEST_CASE("wrong parameters are said with their place") {
  const auto said = [](const std::string& more) {
    return message_of([&] { dataset_of("{class: Figures" + more + "}"); });
  };
  CHECK(said(", size: 16") ==
        "test.yaml:1: data/size: expected a number from 32 to 4096, found 16");
  CHECK(said(", size: 10000") ==
        "test.yaml:1: data/size: expected a number from 32 to 4096, found 10000");
  CHECK(said(", num_people: 0") ==
        "test.yaml:1: data/num_people: expected a number from 1 to 1099511627776, found 0");
  CHECK(said(", line_width: -1") ==
        "test.yaml:1: data/line_width: expected a number from 0 to below 256, found -1");
  CHECK(said(", joint_radius: .nan") ==
        "test.yaml:1: data/joint_radius: expected a number from 0 to below 256, found nan");
  CHECK(unknown_keys_of("{class: Figures, people: 3}").find("people") != std::string::npos);
}

}  // namespace figures_test
}  // namespace stepop::vunet
