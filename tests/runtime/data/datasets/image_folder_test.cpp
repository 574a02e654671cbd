#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace image_folder_test {

const std::string kImages = STEPOP_SOURCE_DIR "/tests/data/images/";

/// Copies one of the images of the tests.
void add(const ScratchFolder& folder, const std::string& name, const std::string& image) {
  folder.write(name, read_plain_or_gzip(kImages + image));
}

std::string yaml(const ScratchFolder& folder, const std::string& more = "") {
  return fmt::format("{{class: ImageFolder, path: {}{}}}", folder.path(), more);
}

TEST_CASE("images are found below the class folders, in order of class and name") {
  const ScratchFolder folder;
  add(folder, "dog/b.JPG", "rgb.jpg");
  add(folder, "cat/deep/er/a.png", "rgb-8.png");
  add(folder, "cat/z.jpeg", "rgb.jpg");
  add(folder, "beside.png", "rgb-8.png");
  add(folder, ".hidden/a.png", "rgb-8.png");
  add(folder, "cat/._a.png", "rgb-8.png");
  folder.write("cat/notes.txt", "no image");
  const auto dataset = dataset_of(yaml(folder));
  REQUIRE(dataset->size() == 3);
  CHECK(values_of<int64_t>(dataset->labels("class")) == std::vector<int64_t>{0, 0, 1});
  CHECK_FALSE(dataset->labels("path").defined());
  CHECK(dataset->label_keys() == std::vector<std::string>{"class"});
  const std::vector<std::string> paths = {"cat/deep/er/a.png", "cat/z.jpeg", "dog/b.JPG"};
  for (int64_t i = 0; i < 3; ++i) {
    const Example example = example_of(*dataset, i);
    CHECK(example.texts.at("path") == paths[static_cast<size_t>(i)]);
    CHECK(example.tensors.at("class").equal(dataset->labels("class")[i]));
  }
  CHECK(example_of(*dataset, 0).tensors.at("image").equal(read_image(kImages + "rgb-8.png")));
  CHECK(message_of([&] { example_of(*dataset, -1); }) ==
        "there is no example -1: the dataset has 3");
}

TEST_CASE("images are resized as pillow does, within two rounding steps") {
  const ScratchFolder folder;
  add(folder, "a/a.jpg", "rgb.jpg");
  const auto dataset = dataset_of(yaml(folder, ", size: [10, 7]"));
  const auto values = values_of<float>(example_of(*dataset, 0).tensors.at("image"));
  std::ifstream file(kImages + "expected.txt");
  std::vector<double> expected;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != "rgb.jpg@10x7") continue;
    for (double value = 0; words >> value;) expected.push_back(value);
  }
  REQUIRE(expected.size() == 4 + values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(std::abs((values[i] + 1) * 127.5 - expected[4 + i]) < 2.01);
  }
}

TEST_CASE("size and channels make different images fit into one batch") {
  const ScratchFolder folder;
  add(folder, "a/grey.png", "grey-16.png");
  add(folder, "b/colour.jpg", "rgb.jpg");
  const std::string more = ", size: [6, 8], channels: 3";
  const Batch batch = batch_of(*dataset_of(yaml(folder, more)), {1, 0});
  CHECK(describe_tensor(batch["image"]) == "float32 [2, 3, 6, 8]");
  CHECK(batch.text("path") == std::vector<std::string>{"b/colour.jpg", "a/grey.png"});
  CHECK(unknown_keys_of(yaml(folder, more + ", classes: [a]")).empty());
  CHECK(
      message_of([&] {
        batch_of(*dataset_of(yaml(folder)), {0, 1});
      }) ==
      "cannot put examples 0 and 1 into one batch: \"image\" is float32 [1, 5, 7] in the first "
      "and float32 [3, 24, 16] in the second; examples of one batch need the same keys, shapes and "
      "types, or a dataset with its own collate(); \"size: [H, W]\" and \"channels: 3\" in the "
      "dataset's config make its images alike");
}

TEST_CASE("named classes set the order of their indices and may be empty") {
  const ScratchFolder folder;
  add(folder, "a/1.png", "rgb-8.png");
  add(folder, "c/1.png", "rgb-8.png");
  folder.write("b/none.txt", "");
  const auto dataset = dataset_of(yaml(folder, ", classes: [c, b, a]"));
  CHECK(values_of<int64_t>(dataset->labels("class")) == std::vector<int64_t>{0, 2});
  CHECK(message_of([&] { dataset_of(yaml(folder, ", classes: [a, d]")); }) ==
        "test.yaml:1: data/classes/1: no such folder: " + folder.path("d"));
  CHECK(message_of([&] { dataset_of(yaml(folder, ", classes: [a, a]")); }) ==
        "test.yaml:1: data/classes/0: the class \"a\" is named twice");
  CHECK(message_of([&] { dataset_of(yaml(folder)); }) ==
        folder.path("b") +
            ": this class folder holds no PNG or JPEG image; add some, or name the "
            "classes with \"classes\"");
}

TEST_CASE("an image that does not decode is reported with its path and index") {
  const ScratchFolder folder;
  folder.write("a/broken.png", "GIF89a");
  const auto dataset = dataset_of(yaml(folder));
  CHECK(message_of([&] { batch_of(*dataset, {0}); }) ==
        "example 0: " + folder.path("a/broken.png") +
            ": expected a PNG, JPEG or WebP, the file begins with 47 49 46 38");
}

TEST_CASE("a folder without images is an error") {
  const ScratchFolder folder;
  add(folder, "beside.png", "rgb-8.png");
  CHECK(message_of([&] { dataset_of(yaml(folder)); }) ==
        folder.path() +
            ": holds no images; they are looked for as CLASS/NAME.png, .jpg or .jpeg "
            "below it");
  CHECK(message_of([&] {
          dataset_of("{class: ImageFolder, path: " + folder.path("none") + "}");
        }) == "test.yaml:1: data/path: no such folder: " + folder.path("none"));
  CHECK(message_of(
            [&] { dataset_of("{class: ImageFolder, path: " + folder.path("beside.png") + "}"); }) ==
        "test.yaml:1: data/path: expected a folder, found a file: " + folder.path("beside.png"));
}

TEST_CASE("a wrong size or number of channels is reported at its place") {
  const ScratchFolder folder;
  add(folder, "a/a.jpg", "rgb.jpg");
  const auto message_for = [&](const std::string& more) {
    return message_of([&] { dataset_of(yaml(folder, more)); });
  };
  CHECK(message_for(", size: [28]") ==
        "test.yaml:1: data/size: expected [height, width], each 1 to 65536, found [28]");
  CHECK(message_for(", size: [0, 28]") ==
        "test.yaml:1: data/size: expected [height, width], each 1 to 65536, found [0, 28]");
  CHECK(message_for(", size: 28") ==
        "test.yaml:1: data/size: expected a list of whole numbers, found 28");
  CHECK(message_for(", channels: 2") ==
        "test.yaml:1: data/channels: expected 1 (grey), 3 (colour) or 4 (with alpha), found 2");
  CHECK(message_for(", size: null, channels: null") == "no error");
}

}  // namespace image_folder_test
}  // namespace stepop
