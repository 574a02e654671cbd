#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/core/formats/gzip_file.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace image_text_test {

const std::string kImages = STEPOP_SOURCE_DIR "/tests/data/images/";

void add(const ScratchFolder& folder, const std::string& name, const std::string& image) {
  folder.write(name, read_plain_or_gzip(kImages + image));
}

std::unique_ptr<Dataset> captions_of(const ScratchFolder& folder, const std::string& more = "") {
  return dataset_of(fmt::format("{{class: ImageText, path: {}{}}}", folder.path(), more));
}

TEST_CASE("captions of several lengths in one batch are an error that names Padded") {
  const ScratchFolder folder;
  add(folder, "a.png", "rgb-8.png");
  add(folder, "b.png", "rgb-8.png");
  folder.write("a.txt", "a cat");
  folder.write("b.txt", "two dogs");
  const auto data = captions_of(folder, ", tokenizer: bytes");
  CHECK(message_of([&] {
          data->collate({example_of(*data, 0), example_of(*data, 1)}, {0, 1});
        }) ==
        "captions of 5 and 8 tokens in one batch: {class: Padded, pad: {tokens: 0}, dataset: "
        "{class: ImageText, ...}} makes them equally long");
  const auto padded =
      dataset_of(fmt::format("{{class: Padded, pad: {{tokens: 0}}, dataset: {{class: ImageText, "
                             "path: {}, tokenizer: bytes}}}}",
                             folder.path()));
  const Batch batch = padded->collate({example_of(*padded, 0), example_of(*padded, 1)}, {0, 1});
  CHECK(batch["tokens"].sizes() == at::IntArrayRef{2, 8});
}

TEST_CASE("an image has the text of the file beside it, and its tokens") {
  const ScratchFolder folder;
  add(folder, "a.png", "rgb-8.png");
  add(folder, "b/c.jpg", "rgb.jpg");
  folder.write("a.txt", " a cat\n");
  folder.write("b/c.txt", "two\n\ndogs ");
  const auto data = captions_of(folder, ", tokenizer: bytes, length: 5");
  REQUIRE(data->size() == 2);
  const Example first = example_of(*data, 0);
  CHECK(first.texts.at("text") == "a cat");
  CHECK(first.texts.at("path") == "a.png");
  CHECK(first.tensors.at("image").dim() == 3);
  CHECK(values_of<int64_t>(first.tensors.at("tokens")) ==
        std::vector<int64_t>{'a', ' ', 'c', 'a', 't'});
  CHECK(values_of<int64_t>(data->labels("length")) == std::vector<int64_t>{5, 5});
  CHECK_FALSE(example_of(*captions_of(folder), 0).tensors.contains("tokens"));

  const auto lines = captions_of(folder, ", lines: true");
  std::set<std::string> seen;
  for (uint64_t i = 0; i < 20; ++i) {
    Random random(i);
    seen.insert(lines->get(1, random).texts.at("text"));
  }
  CHECK(seen == std::set<std::string>{"two", "dogs"});
  CHECK(lines->label_keys().empty());
}

TEST_CASE("an image without a caption is an error, or left out, or has an empty one") {
  const ScratchFolder folder;
  add(folder, "a.png", "rgb-8.png");
  add(folder, "b.png", "rgb-8.png");
  folder.write("b.txt", "b");
  CHECK(message_of([&] { captions_of(folder); }) ==
        folder.path() +
            ": 1 of 2 images have no caption, such as a.png, which needs a.txt; \"missing: drop\" "
            "leaves them out, \"missing: empty\" gives them empty ones");
  const auto dropped = captions_of(folder, ", missing: drop");
  CHECK(dropped->size() == 1);
  CHECK(dropped->notice() == folder.path() + ": 1 image without a caption left out");
  CHECK(example_of(*captions_of(folder, ", missing: empty"), 0).texts.at("text").empty());
  folder.write("a.txt", "\xff");
  const auto all =
      captions_of(folder, ", tokenizer: {class: characters, of: " + folder / "b.txt" + "}");
  CHECK(message_of([&] { batch_of(*all, {0}); }) ==
        "example 0: the caption of a.png: the text is not UTF-8");
}

TEST_CASE("captions come from a table, too") {
  const ScratchFolder folder;
  add(folder, "a.png", "rgb-8.png");
  const auto table = folder.write("t.csv", "file,caption\na.png,one\na.png,\"two, too\"\n");
  const auto data = captions_of(folder, ", table: " + table + ", image_column: file");
  REQUIRE(data->size() == 2);
  CHECK(example_of(*data, 1).texts.at("text") == "two, too");
  CHECK(message_of([&] { captions_of(folder, ", table: " + table); }) ==
        "test.yaml:1: data/image_column: " + table +
            " has no column \"image\"; there are: file, caption");
}

TEST_CASE("a video is a folder of frames, of which pieces are taken") {
  const ScratchFolder folder;
  for (int i = 0; i < 7; ++i) add(folder, fmt::format("one/{:03}.png", i), "rgb-8.png");
  for (int i = 0; i < 2; ++i) add(folder, fmt::format("two/{:03}.png", i), "rgb-8.png");
  for (int i = 0; i < 5; ++i) add(folder, fmt::format("x/three/{:03}.png", i), "rgb-8.png");
  const auto pieces = [&](const std::string& more) {
    return dataset_of(fmt::format("{{class: Video, path: {}, {}}}", folder.path(), more));
  };
  const auto data = pieces("length: 3, step: 2, stride: 1");
  CHECK(values_of<int64_t>(data->labels("video")) == std::vector<int64_t>{0, 0, 0, 2});
  CHECK(example_of(*data, 2).texts.at("path") == "one/002.png");
  CHECK(example_of(*data, 2).tensors.at("frames").dim() == 4);
  CHECK(example_of(*data, 2).tensors.at("frames").size(0) == 3);
  CHECK(data->notice() == folder.path() + ": 1 of 3 videos left out: shorter than a piece");
  CHECK(pieces("length: 2")->size() == 3 + 1 + 2);
  CHECK(message_of([&] { pieces("length: 8"); }) ==
        fmt::format("test.yaml:1: data/length: a piece of 8 frames with step 1 spans 8; the "
                    "longest of 3 videos in {} has 7",
                    folder.path()));
  const ScratchFolder other;
  other.write("a.mp4", "");
  CHECK(message_of([&] { dataset_of("{class: Video, path: " + other.path() + "}"); }) ==
        fmt::format("{0}: holds no frames; they are looked for as VIDEO/NAME.png, .jpg or .jpeg. "
                    "Frames of a video's file are made once: cd {0} && mkdir a && ffmpeg -i a.mp4 "
                    "-qscale:v 2 a/%06d.jpg",
                    other.path()));
}

}  // namespace image_text_test
}  // namespace stepop
