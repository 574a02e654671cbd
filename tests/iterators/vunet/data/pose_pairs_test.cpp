#include "iterators/vunet/data/pose_pairs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "runtime/core/pictures/image_file.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop::vunet {
namespace pose_pairs_test {

const std::string kHeader =
    "image,person,x0,y0,x1,y1,x2,y2,x3,y3,x4,y4,x5,y5,x6,y6,x7,y7,x8,y8,x9,y9,x10,y10,x11,y11,"
    "x12,y12,x13,y13,x14,y14,x15,y15,x16,y16,x17,y17\n";

/// The 36 numbers of a pose in an image of 20 x 40 pixels, with `first` for x0.
std::string numbers(const std::string& first = "9.5") {
  std::string cells = first + ",4";
  for (int joint = 1; joint < 18; ++joint) {
    cells += joint == 4 ? ",0,0" : fmt::format(",{},{}", 3 + joint % 4 * 4, 5 + joint * 2);
  }
  return cells;
}

/// A table of people and a folder of grey images of 20 x 40 pixels, each in a grey of its own.
struct People {
  explicit People(const std::vector<std::string>& people) {
    std::string table = kHeader;
    for (size_t i = 0; i < people.size(); ++i) {
      const auto grey = static_cast<int64_t>(10 * i + 5);
      folder.write(fmt::format("images/{}.png", i),
                   encode_png(at::full({40, 20, 3}, grey, at::kByte)));
      table += fmt::format("images/{}.png,{},{}\n", i, people[i], numbers());
    }
    folder.write("people.csv", table);
  }
  std::string yaml(const std::string& more = ", size: 16") const {
    return fmt::format("{{class: PosePairs, path: {}{}}}", folder / "people.csv", more);
  }
  ScratchFolder folder;
};

/// Which row's image it is, by its grey.
int64_t row_of(const at::Tensor& image) {
  return static_cast<int64_t>((image[0][0][0].item<float>() * 127.5F + 127.5F) / 10);
}

TEST_CASE("an example pairs a row with another one of the same person, and all of them in time") {
  const People people({"ann", "bob", "ann", "ann", "bob", "eve"});
  const auto dataset = dataset_of(people.yaml());
  REQUIRE(dataset->size() == 6);
  std::map<int64_t, std::set<int64_t>> partners;
  for (int64_t i = 0; i < 6; ++i) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      Random random(seed);
      const Example example = dataset->get(i, random);
      CHECK(row_of(example.tensors.at("target")) == i);
      partners[i].insert(row_of(example.tensors.at("appearance")));
    }
  }
  CHECK((partners[0] == std::set<int64_t>{2, 3}));
  CHECK((partners[1] == std::set<int64_t>{4}));
  CHECK((partners[2] == std::set<int64_t>{0, 3}));
  CHECK((partners[3] == std::set<int64_t>{0, 2}));
  CHECK((partners[4] == std::set<int64_t>{1}));
  CHECK((partners[5] == std::set<int64_t>{5}));  // the only one
  CHECK(values_of<int64_t>(dataset->labels("person")) == std::vector<int64_t>{0, 1, 0, 0, 1, 2});
}

TEST_CASE("the same generator draws the same pair") {
  const People people({"ann", "ann", "ann", "ann", "ann"});
  const auto dataset = dataset_of(people.yaml());
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Random one(seed);
    Random again(seed);
    CHECK(dataset->get(0, one).texts.at("appearance_path") ==
          dataset->get(0, again).texts.at("appearance_path"));
  }
}

TEST_CASE("fixed pairs go around a person's rows, whatever the generator") {
  const People people({"ann", "bob", "ann", "ann", "eve"});
  const auto dataset = dataset_of(people.yaml(", size: 16, pairs: fixed"));
  const std::vector<int64_t> expected = {2, 1, 3, 0, 4};
  for (int64_t i = 0; i < 5; ++i) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      Random random(seed);
      CHECK(row_of(dataset->get(i, random).tensors.at("appearance")) ==
            expected[static_cast<size_t>(i)]);
    }
  }
}

TEST_CASE("images are resized, and the joints with them, each side by its own factor") {
  const People people({"ann", "ann"});
  people.folder.write(
      "images/0.png",
      encode_png((at::full({40, 20, 3}, 1, at::kByte).cumsum(0) * 5).to(at::kByte)));
  const auto dataset = dataset_of(people.yaml(", size: 60, line_width: 2.5, joint_radius: 1"));
  const Example example = example_of(*dataset, 0);
  const at::Tensor stored = read_image(people.folder / "images/0.png", 3);
  const int64_t side = 60;
  CHECK(example.tensors.at("target").equal(
      at::_upsample_bilinear2d_aa(stored.unsqueeze(0), {side, side}, false)[0]));
  Joints joints = {};
  joints[0] = {9.5 * 3, 4 * 1.5};
  for (int joint = 1; joint < 18; ++joint) {
    if (joint == 4) continue;
    joints[static_cast<size_t>(joint)] = {(3 + joint % 4 * 4) * 3.0, (5 + joint * 2) * 1.5};
  }
  CHECK(example.tensors.at("stickman")
            .equal(draw_stickman(joints, side, {.line_width = 2.5, .joint_radius = 1})));
  CHECK(example.texts.at("target_path") == people.folder / "images/0.png");
  CHECK(example.texts.at("appearance_path") == people.folder / "images/1.png");
  const auto plain = dataset_of(people.yaml(", size: 60"));
  CHECK(example_of(*plain, 0).tensors.at("stickman").equal(draw_stickman(joints, side)));
  const Batch batch = batch_of(*dataset, {1, 0});
  CHECK(batch["appearance"].sizes() == at::IntArrayRef({2, 3, 60, 60}));
  CHECK((batch["person"].scalar_type() == at::kLong));
}

TEST_CASE("columns may be in any order, with others between them, as pandas's without a name") {
  const People people({"ann"});
  const Example expected = example_of(*dataset_of(people.yaml()), 0);
  const std::string header = kHeader.substr(0, kHeader.size() - 1);  // without its end of line
  people.folder.write("people.csv", ",a/b,index," + header + ",note\n0,any,7,images/0.png,ann," +
                                        numbers() + ",more\n");
  const Example example = example_of(*dataset_of(people.yaml()), 0);
  CHECK(example.tensors.size() == 4);
  CHECK(example.texts.size() == 2);
  CHECK(example.tensors.at("stickman").equal(expected.tensors.at("stickman")));
}

TEST_CASE("a mistake in the table is said with file, line and column") {
  const People people({"ann"});
  const std::string table = people.folder / "people.csv";
  const auto said = [&](const std::string& content) {
    people.folder.write("people.csv", content);
    return message_of([&] { dataset_of(people.yaml()); });
  };
  const auto row = [](const std::string& first) {
    return kHeader + "images/0.png,ann," + numbers(first) + "\n";
  };
  CHECK(said(kHeader) == table + ": holds no rows below its header");
  CHECK(said(row("nan")) == table +
                                ":2: column \"x0\": expected a finite number, found nan; an absent "
                                "joint has x = 0 and y = 0");
  CHECK(said(row("-inf")).find("found -inf;") != std::string::npos);
  CHECK(said(row("left")) ==
        table + ":2: column \"x0\": expected a float32 number, found \"left\"");
  CHECK(said(row("")) ==
        table + ":2: column \"x0\": expected a float32 number, found an empty cell");
  CHECK(said(row("1,2")) == table + ":2: 39 cells, the header has 38 columns");
  CHECK(said(kHeader + "images/9.png,ann," + numbers() + "\n")
            .find(table + ":2: column \"image\": ") == 0);
  CHECK(said("image,person,x0,y0\nimages/0.png,ann,1,2\n") ==
        table +
            ": no column x1, y1, x2, y2, x3, y3, x4, y4, x5, y5, x6, y6, x7, y7, x8, y8, x9, y9, "
            "x10, y10, x11, y11, x12, y12, x13, y13, x14, y14, x15, y15, x16, y16, x17, y17; "
            "expected image, x0, y0, ..., x17, y17 and person, found the 4 columns image, person, "
            "x0, y0");
}

TEST_CASE("an image that is damaged, or a joint far away, is said with its row") {
  const People people({"ann", "ann"});
  const std::string table = people.folder / "people.csv";
  people.folder.write("images/1.png", "no image");
  const auto dataset = dataset_of(people.yaml(", size: 16, pairs: fixed"));
  const std::string said = message_of([&] { example_of(*dataset, 0); });
  CHECK(said.find(table + ":3: column \"image\": " + (people.folder / "images/1.png")) == 0);
  people.folder.write("people.csv", kHeader + "images/0.png,ann," + numbers("1e6") + "\n");
  CHECK(message_of([&] { example_of(*dataset_of(people.yaml()), 0); }) ==
        table +
            ":2: resized to 16 pixels, joint 0 is at (800000, 1.6): expected pixels, at most 8192 "
            "from the image");
}

TEST_CASE("wrong parameters of pairs are said with their place") {
  const People people({"ann"});
  const auto said = [&](const std::string& more) {
    return message_of([&] { dataset_of(people.yaml(more)); });
  };
  CHECK(said(", size: 16, pairs: often") ==
        "test.yaml:1: data/pairs: expected random or fixed, found \"often\"");
  CHECK(said(", size: 5000") ==
        "test.yaml:1: data/size: expected a number from 1 to 4096, found 5000");
  CHECK(said("").find("data/size") != std::string::npos);
  CHECK(message_of([&] { dataset_of("{class: PosePairs, path: /no/such.csv, size: 16}"); }) ==
        "test.yaml:1: data/path: no such file: /no/such.csv");
  CHECK(unknown_keys_of(people.yaml(", size: 16, pair: fixed")).find("pair") != std::string::npos);
}

}  // namespace pose_pairs_test
}  // namespace stepop::vunet
