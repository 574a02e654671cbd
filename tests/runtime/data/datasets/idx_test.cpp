#include <ATen/ops/bincount.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/core/measure/tensor_statistics.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace idx_test {

const std::string kDigits = STEPOP_SOURCE_DIR "/configs/data/digits-";

/// An IDX file of uint8 whose dimensions are below 256.
std::string idx(const std::vector<int>& shape, const std::vector<int>& values, char type = 8) {
  std::string bytes = {0, 0, type, static_cast<char>(shape.size())};
  for (const int length : shape) bytes += std::string(3, '\0') + static_cast<char>(length);
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

/// A folder with the two files of a dataset.
struct Files {
  Files(const std::string& images_content, const std::string& labels_content)
      : images(folder.write("images", images_content)),
        labels(folder.write("labels", labels_content)),
        yaml(fmt::format("{{class: Idx, images: {}, labels: {}}}", images, labels)) {}

  std::string message() const {
    return message_of([&] { dataset_of(yaml); });
  }

  ScratchFolder folder;
  std::string images;
  std::string labels;
  std::string yaml;
};

TEST_CASE("grey IDX images come as [1, H, W] in [-1, 1] with their class") {
  const Files files(idx({2, 1, 2}, {0, 255, 51, 204}), idx({2}, {7, 3}));
  const auto dataset = dataset_of(files.yaml);
  CHECK(dataset->size() == 2);
  const Example example = example_of(*dataset, 1);
  CHECK(describe_tensor(example.tensors.at("image")) == "float32 [1, 1, 2]");
  CHECK(values_of<float>(example.tensors.at("image"))[0] == doctest::Approx(-0.6));
  CHECK(values_of<float>(example.tensors.at("image"))[1] == doctest::Approx(0.6));
  CHECK(describe_tensor(example.tensors.at("class")) == "int64 []");
  CHECK(example.tensors.at("class").item<int64_t>() == 3);
  CHECK(values_of<int64_t>(dataset->labels("class")) == std::vector<int64_t>{7, 3});
  CHECK_FALSE(dataset->labels("image").defined());
  CHECK(dataset->label_keys() == std::vector<std::string>{"class"});
  CHECK(unknown_keys_of(files.yaml).empty());
}

TEST_CASE("colour IDX images are stored channels last and come channels first") {
  const Files files(idx({1, 1, 2, 3}, {0, 0, 255, 255, 0, 255}), idx({1}, {0}));
  const Example example = example_of(*dataset_of(files.yaml), 0);
  CHECK(describe_tensor(example.tensors.at("image")) == "float32 [3, 1, 2]");
  CHECK(values_of<float>(example.tensors.at("image")) == std::vector<float>{-1, 1, -1, -1, 1, 1});
}

TEST_CASE("a gathered IDX batch equals its examples") {
  const auto dataset = dataset_of(fmt::format(
      "{{class: Idx, images: {0}test-images.idx.gz, labels: {0}test-labels.idx.gz}}", kDigits));
  const std::vector<int64_t> indices = {354, 0, 17, 17};
  const Batch batch = batch_of(*dataset, indices);
  CHECK(describe_tensor(batch["image"]) == "float32 [4, 1, 8, 8]");
  CHECK(batch["image"].is_contiguous());
  CHECK(values_of<int64_t>(batch["index"]) == indices);
  for (size_t i = 0; i < indices.size(); ++i) {
    const Example example = example_of(*dataset, indices[i]);
    CHECK(batch["image"][static_cast<int64_t>(i)].equal(example.tensors.at("image")));
    CHECK(batch["class"][static_cast<int64_t>(i)].equal(example.tensors.at("class")));
  }
  CHECK(message_of([&] {
          batch_of(*dataset, {0, 355});
        }) == "there is no example 355: the dataset has 355");
}

TEST_CASE("a batch out of two IDX datasets equals their examples") {
  const Files files(idx({2, 1, 2}, {0, 255, 51, 204}), idx({2}, {7, 3}));
  const auto both =
      dataset_of("{class: Concat, datasets: [" + files.yaml + ", " + files.yaml + "]}");
  const Batch batch = batch_of(*both, {3, 0, 2});
  CHECK(values_of<int64_t>(batch["class"]) == std::vector<int64_t>{3, 7, 7});
  CHECK(describe_tensor(batch["image"]) == "float32 [3, 1, 1, 2]");
  const std::vector<float> pixels = values_of<float>(batch["image"]);
  const std::vector<double> expected = {-0.6, 0.6, -1, 1, -1, 1};
  for (size_t i = 0; i < expected.size(); ++i) CHECK(pixels[i] == doctest::Approx(expected[i]));
}

TEST_CASE("the digits that ship are all there, with the same share of each class in both splits") {
  const auto counts = [](const std::string& split) {
    const auto dataset = dataset_of(
        fmt::format("{{class: Idx, images: {0}{1}-images.idx.gz, labels: {0}{1}-labels.idx.gz}}",
                    kDigits, split));
    return values_of<int64_t>(at::bincount(dataset->labels("class")));
  };
  CHECK(counts("train") == std::vector<int64_t>{143, 146, 142, 147, 145, 146, 145, 144, 140, 144});
  CHECK(counts("test") == std::vector<int64_t>{35, 36, 35, 36, 36, 36, 36, 35, 34, 36});
}

TEST_CASE("the first digit that ships is scikit-learn's") {
  const auto dataset = dataset_of(fmt::format(
      "{{class: Idx, images: {0}train-images.idx.gz, labels: {0}train-labels.idx.gz}}", kDigits));
  const Example example = example_of(*dataset, 0);
  CHECK(example.tensors.at("class").item<int64_t>() == 0);
  // load_digits().images[0][:2], where 16 is full ink
  const std::vector<double> ink = {0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0};
  const auto values = values_of<float>(example.tensors.at("image"));
  for (size_t i = 0; i < ink.size(); ++i) {
    CHECK(values[i] == doctest::Approx(ink[i] / 8 - 1).epsilon(0.006));
  }
}

TEST_CASE("IDX files that do not belong together are named with their counts") {
  const Files files(idx({2, 1, 1}, {1, 2}), idx({3}, {0, 1, 2}));
  CHECK(files.message() == files.images + " holds 2 images, " + files.labels +
                               " holds 3 labels; each image needs one");
}

TEST_CASE("IDX files of another shape or type are refused") {
  const Files flat(idx({2}, {1, 2}), idx({2}, {0, 1}));
  CHECK(flat.message() ==
        flat.images + ": images are uint8 [N, H, W] or [N, H, W, C], found uint8 [2]");
  const Files wide(idx({1, 1, 1}, {0, 1}, 0x0b), idx({1}, {0}));
  CHECK(wide.message() ==
        wide.images + ": images are uint8 [N, H, W] or [N, H, W, C], found int16 [1, 1, 1]");
  const Files exchanged(idx({1, 1, 1}, {1}), idx({1, 1, 1}, {0}));
  CHECK(exchanged.message() == exchanged.labels +
                                   ": labels are whole numbers [N], found uint8 [1, 1, 1]; are "
                                   "images and labels exchanged?");
  const Files negative(idx({1, 1, 1}, {1}), idx({1}, {-3}, 9));
  CHECK(negative.message() == negative.labels + ": label 0 is -3; classes count from 0");
}

TEST_CASE("an IDX dataset without images is an error") {
  const Files files(idx({0, 28, 28}, {}), idx({0}, {}));
  CHECK(files.message() == files.images + ": holds no images: uint8 [0, 28, 28]");
}

TEST_CASE("a missing file of a dataset is reported at its place in the config") {
  const Files files(idx({1, 1, 1}, {1}), idx({1}, {0}));
  CHECK(message_of([&] {
          dataset_of(fmt::format("{{class: Idx, images: {}, labels: {}}}", files.images,
                                 files.folder.path("none")));
        }) == "test.yaml:1: data/labels: no such file: " + files.folder.path("none"));
  CHECK(message_of([&] {
          dataset_of(fmt::format("{{class: Idx, images: {}, labels: {}}}", files.folder.path(),
                                 files.labels));
        }) == "test.yaml:1: data/images: expected a file, found a folder: " + files.folder.path());
  CHECK(message_of([] { dataset_of("{class: Idx}"); }) ==
        "test.yaml:1: data/images: missing; give it in a config, or on the command line as "
        "--data/images VALUE");
}

}  // namespace idx_test
}  // namespace stepop
