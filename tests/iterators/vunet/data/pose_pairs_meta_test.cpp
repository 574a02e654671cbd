// PosePairs of a meta.yaml folder, as the data of VUNet's implementation for edflow has it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/meta_writer.h"
#include "tests/dataset_of.h"
#include "tests/iterators/vunet/vunet_run.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace pose_pairs_meta_test {

const std::string kFigures =
    "{class: Figures, size: 32, examples: 8, num_people: 4, keypoints: true, line_width: 4, "
    "joint_radius: 3}";

/// Figures as a folder of images and keypoints.
struct People {
  People() : path(folder.path("people")) {
    write_meta_folder(*dataset_of(kFigures), path, "figures", {}, {}, {});
  }
  std::string yaml(const std::string& more = "") const {
    return fmt::format(
        "{{class: PosePairs, size: 32, image: target, keypoints: keypoints{}, dataset: {{class: "
        "Meta, path: {}, keys: [target, keypoints, person]}}}}",
        more, path);
  }

  ScratchFolder folder;
  std::string path;
};

TEST_CASE("pairs of a folder's images have the stick figure of its keypoints") {
  const People people;
  const auto figures = dataset_of(kFigures);
  const auto dataset = dataset_of(people.yaml(", person: person, pairs: fixed"));
  REQUIRE(dataset->size() == 8);
  for (int64_t i = 0; i < 8; ++i) {
    const Example truth = example_of(*figures, i);
    const Example made = example_of(*dataset, i);
    CHECK(made.tensors.at("stickman").equal(truth.tensors.at("stickman")));
    CHECK(made.tensors.at("target").allclose(truth.tensors.at("target"), 0, 1e-6));
    CHECK(made.tensors.at("person").item<int64_t>() == i % 4);
    // The other image of the person.
    CHECK(made.tensors.at("appearance")
              .equal(example_of(*dataset, (i + 4) % 8).tensors.at("target")));
  }
  CHECK(dataset->labels("person").size(0) == 8);
  // Without people any image is an appearance.
  const auto one = dataset_of(people.yaml(", pairs: fixed"));
  CHECK(
      example_of(*one, 2).tensors.at("appearance").equal(example_of(*one, 3).tensors.at("target")));
  const auto message = [&](const std::string& more) {
    return message_of([&] { example_of(*dataset_of(people.yaml(more)), 0); });
  };
  CHECK(message(", person: name") ==
        "test.yaml:1: data/person: expected a label of whole numbers, one for each example; "
        "\"name\" is none; there are: keypoints, person");
  CHECK(message_of([&] {
          example_of(*dataset_of("{class: PosePairs, size: 8, image: target, dataset: " + kFigures +
                                 ", keypoints: person}"),
                     0);
        }) == "PosePairs: \"person\": expected [18, 2 or more], found int64 []");
}

TEST_CASE("VUNet trains on a folder of images and keypoints") {
  const People people;
  std::string yaml = vunet_config("losses: {color_L1: {weight: 1}}\nnum_steps: 2\n");
  const std::string train = "{class: Figures, size: 32, examples: 8, num_people: 4}";
  yaml.replace(yaml.find(train), train.size(), people.yaml(", person: person"));
  TestRun run(yaml);
  run.train();
  CHECK(run.session.position().global_step == 2);
}

}  // namespace pose_pairs_meta_test
}  // namespace stepop
