// What goes through several levels of views, and what is said of mistakes in them.
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "runtime/core/components/registry.h"
#include "tests/runtime/data/views/numbers.h"

namespace stepop {
namespace levels_test {

TEST_CASE("labels and indices go through three levels of views") {
  const auto dataset = dataset_of(
      "{class: Subset, indices: [4, 0, 5], dataset: {class: Concat, source_key: from, datasets: ["
      "{class: Subset, range: [8, 10], dataset: " +
      kTen +
      "}, "
      "{class: Map, function: {class: rename, keys: {value: value}}, dataset: " +
      kTen + "}]}}");
  CHECK(ids_of(*dataset) == Ids{2, 8, 3});
  CHECK(ids_of(*dataset, "from") == Ids{1, 0, 1});
  const Batch batch = batch_of(*dataset, {2, 1});
  CHECK(values_of<int64_t>(batch["index"]) == Ids{2, 1});
  CHECK(values_of<int64_t>(batch["id"]) == Ids{3, 8});
  CHECK(values_of<int64_t>(batch["group"]) == Ids{1, 2});
}

TEST_CASE("a dataset's own collate, which pads, works through views") {
  for (const char* gathers : {"false", "true"}) {
    const std::string source =
        fmt::format("{{class: TestNumbers, size: 8, pads: true, gathers: {}}}", gathers);
    const auto tokens = [&](const std::string& view, const std::string& key = "tokens") {
      return batch_of(*dataset_of(view), {0, 1, 2})[key].sizes().vec();
    };
    const std::string part = "{class: Subset, indices: [0, 2, 5], dataset: " + source + "}";
    CHECK(tokens(part) == Ids{3, 3});
    // Its parts have 3 and 2 numbers, so they are put together example by example.
    CHECK(tokens("{class: Concat, datasets: [" + part +
                 ", {class: Subset, range: [1, 2], dataset: " + source + "}]}") == Ids{3, 3});
    CHECK(batch_of(*dataset_of("{class: Concat, datasets: [" + part + ", " + source + "]}"),
                   {1, 3, 4})["tokens"]
              .sizes()
              .vec() == Ids{3, 3});
    CHECK(tokens("{class: Cached, dataset: " + part + "}") == Ids{3, 3});
    CHECK(tokens("{class: Zip, datasets: {a: " + part + "}}", "a/tokens") == Ids{3, 3});
    CHECK(tokens("{class: Sequence, length: 2, dataset: " + source + "}") == Ids{3, 2, 4});
    CHECK(tokens("{class: UnSequence, dataset: {class: Sequence, length: 2, dataset: " + source +
                 "}}") == Ids{3, 2});
    CHECK(tokens("{class: Joined, label: id, dataset: " + part + "}", "partner/tokens") ==
          Ids{3, 3});
  }
}

TEST_CASE("a bad example is named through nested views, alone and in a batch") {
  for (const char* how : {"gathers: false", "gathers: true", "writes: true"}) {
    const std::string bad = fmt::format("{{class: TestNumbers, size: 10, bad: 7, {}}}", how);
    const auto dataset = dataset_of(
        "{class: Subset, range: [2, 15], dataset: {class: Map, function: {class: rename, keys: "
        "{value: value}},"
        " dataset: {class: Concat, datasets: [{class: TestNumbers, size: 5, gathers: "
        "true, writes: true}, " +
        bad + "]}}}");
    CHECK(message_of([&] {
            batch_of(*dataset, {1, 10});
          }) ==
          "example 10: example 12 of data/dataset: example 7 of data/dataset/dataset/datasets/1: "
          "n7.png is damaged");
    const auto zip = dataset_of(
        "{class: Zip, datasets: {left: {class: Sequence, length: 2, dataset:"
        " {class: Cached, dataset: " +
        bad +
        "}}, right: {class: Subset, "
        "range: [0, 9], dataset: " +
        kTen + "}}}");
    CHECK(message_of([&] {
            batch_of(*zip, {1, 6});
          }) ==
          "example 6: example 6 of data/datasets/left: example 7 of data/datasets/left/dataset: "
          "n7.png is damaged");
  }
}

TEST_CASE("a batch out of several datasets is written row by row where all of them can") {
  const std::string writes = "{class: TestNumbers, size: 5, first: 10, writes: true}";
  const std::string part =
      "{class: Subset, indices: [4, 2], dataset: {class: Concat, datasets: [{class: TestNumbers, "
      "size: 2, writes: true}, " +
      writes + "]}}";
  const auto dataset =
      dataset_of("{class: Concat, source_key: from, datasets: [" + writes + ", " + part + "]}");
  const int64_t before = TestNumbers::rows_written;
  const Batch batch = batch_of(*dataset, {5, 1, 6, 0, 5});
  CHECK(TestNumbers::rows_written - before == 5);
  CHECK(values_of<int64_t>(batch["id"]) == Ids{12, 11, 10, 10, 12});
  CHECK(values_of<float>(batch["value"]) ==
        std::vector<float>{12, 12.5, 11, 11.5, 10, 10.5, 10, 10.5, 12, 12.5});
  CHECK(batch.text("name") == std::vector<std::string>{"n12", "n11", "n10", "n10", "n12"});
  CHECK(values_of<int64_t>(batch["from"]) == Ids{1, 0, 1, 0, 1});
  CHECK(values_of<int64_t>(batch["index"]) == Ids{5, 1, 6, 0, 5});
}

TEST_CASE("datasets whose rows differ are put together otherwise, and differences are reported") {
  const std::string writes = "{class: TestNumbers, size: 2, writes: true}";
  const int64_t before = TestNumbers::rows_written;
  const auto ids = [&](const std::string& other) {
    const auto dataset = dataset_of("{class: Concat, datasets: [" + writes + ", " + other + "]}");
    return values_of<int64_t>(batch_of(*dataset, {2, 0})["id"]);
  };
  CHECK(ids("{class: TestNumbers, size: 2, first: 20}") == Ids{20, 0});
  CHECK(message_of([&] {
          ids("{class: TestNumbers, size: 2, first: 20, writes: true, draws: true}");
        }).find("cannot put examples 2 and 0 into one batch: \"draw\" is only in the first") !=
        std::string::npos);
  CHECK(TestNumbers::rows_written == before);
}

TEST_CASE("images of one size in several datasets come into one batch, others are reported") {
  const auto with = [](const std::string& shape) {
    return "{class: Synthetic, size: 20, seed: 3, shape: " + shape + "}";
  };
  const auto small = dataset_of(with("[1, 4, 5]"));
  const auto both = dataset_of("{class: Mixture, weights: [1, 2], datasets: [" + with("[1, 4, 5]") +
                               ", " + with("[1, 4, 5]") + "]}");
  const Batch batch = batch_of(*both, {0, 1, 2, 3, 4, 5});
  const Ids inner = values_of<int64_t>(both->labels("class"));
  for (int64_t row = 0; row < 6; ++row) {
    CHECK(batch["class"].select(0, row).item<int64_t>() == inner[static_cast<size_t>(row)]);
    // Example i of these is of class i, for i below 10.
    CHECK(at::equal(batch["image"].select(0, row),
                    example_of(*small, inner[static_cast<size_t>(row)]).tensors.at("image")));
  }
  const auto mixed = dataset_of("{class: Concat, datasets: [" + with("[1, 4, 5]") + ", " +
                                with("[1, 5, 4]") + "]}");
  CHECK(message_of([&] {
          batch_of(*mixed, {20, 0});
        }).find("cannot put examples 20 and 0 into one batch: \"image\" is") != std::string::npos);
}

TEST_CASE("what a dataset has to say at the start is said once, through views") {
  const std::string source = "{class: TestNumbers, notice: \"3 rows left out\"}";
  CHECK(dataset_of("{class: Concat, datasets: [" + source + ", " + source +
                   ", {class: TestNumbers, notice: empty}]}")
            ->notice() == "3 rows left out\nempty");
}

TEST_CASE("the key of the source is one that the examples do not have") {
  for (const char* gathers : {"false", "true"}) {
    const auto dataset =
        dataset_of(fmt::format("{{class: Concat, source_key: id, datasets: [{{class: "
                               "TestNumbers, gathers: {}}}]}}",
                               gathers));
    CHECK(message_of([&] {
            batch_of(*dataset, {3});
          }).find("the examples have \"id\" already: choose another source_key") !=
          std::string::npos);
  }
}

TEST_CASE("the datasets in a list that a run does not build are known, and have absolute paths") {
  const Config config(
      parse_yaml("data: {class: Concat, datasets: [{class: Csv, path: a.csv, columns: {x: int}}]}",
                 {"/conf/test.yaml", 0}));
  declare_component(datasets(), config, "data");
  CHECK(config.unknown_keys() == "");
  make_paths_absolute(config);
  CHECK(config.peek("data/datasets/0/path")->as_text() == "/conf/a.csv");
}

TEST_CASE("mistakes in the config of a view are reported with what would help") {
  const auto with_ten = [](const std::string& view) {
    return message_for("{" + view + ", dataset: " + kTen + "}");
  };
  const std::string at = "test.yaml:1: data";
  CHECK(with_ten("class: Subset") ==
        at + ": Subset needs one of range, indices, fraction and split, found none");
  CHECK(with_ten("class: Subset, range: [0, 1], fraction: 0.5") ==
        at + ": Subset needs one of range, indices, fraction and split, found range, fraction");
  CHECK(with_ten("class: Subset, range: [3, 11]") ==
        at +
            "/range: expected [begin, end] or [begin, end, step] with 0 <= begin <= end <= 10, the "
            "number of examples of data/dataset; found 3, 11");
  CHECK(with_ten("class: Subset, indices: [0, 10]") ==
        at + "/indices/1: there is no example 10: data/dataset has 10");
  CHECK(with_ten("class: Subset, fraction: 1.5") ==
        at + "/fraction: expected the part from the beginning, such as 0.9, or where it begins and "
             "ends, such as [0.9, 1], within 0 and 1, found 1.5");
  CHECK(with_ten("class: Subset, part: val, split: {parts: {train: 0.9, validation: 0.1}}") ==
        at + "/part: the split has no part \"val\"; its parts are: train, validation");
  CHECK(with_ten("class: Subset, part: a, split: {parts: {a: 0.9, b: 0.2}}") ==
        at + "/split/parts: the shares sum up to 1.1, which is above 1");
  CHECK(with_ten("class: Subset, part: a, split: {parts: {a: 90}}") ==
        at + "/split/parts/a: a part's share is above 0 and at most 1, found 90");
  CHECK(with_ten("class: Subset, part: a, split: {parts: {a: 0.01}}") ==
        at + "/part: no example is left for \"a\": data/dataset has 10; choose a larger share or "
             "another seed");
  CHECK(with_ten("class: Subset, part: a, split: {parts: {a: 1}, groups: person}") ==
        at +
            "/split/groups: data/dataset has no label \"person\" with one number for each example; "
            "its labels are: id, group");
  CHECK(message_for("{class: Concat, datasets: " + kTen + "}") ==
        at + "/datasets: expected a list of datasets, such as [{class: Idx, ...}, {class: Csv, "
             "...}], found a map");
  CHECK(message_for("{class: Concat}").find("datasets: missing") != std::string::npos);
  CHECK(message_for("{class: Mixture, weights: [1], datasets: [" + kTen + ", " + kTen + "]}") ==
        at + "/weights: expected a weight for each of the 2 datasets, found 1");
  CHECK(message_for("{class: Mixture, weights: [1, 0], datasets: [" + kTen + ", " + kTen + "]}") ==
        at + "/weights/1: expected more than 0, found 0");
  CHECK(
      message_for("{class: Zip, datasets: {a: " + kTen + ", b: {class: TestNumbers, size: 9}}}") ==
      at + "/datasets: they have different numbers of examples: data/datasets/a 10, "
           "data/datasets/b 9; a Subset makes the longer one shorter");
  CHECK(with_ten("class: Sequence, length: 4, within: group") ==
        at +
            "/length: no sequence of 4 examples, 1 apart, fits into data/dataset, which has 10 and "
            "borders between them");
  CHECK(with_ten("class: Sequence").find("length: missing") != std::string::npos);
  CHECK(with_ten("class: Map, function: renam")
            .find("data/function: unknown example function \"renam\": did you mean \"rename\"? "
                  "Known are: rename") != std::string::npos);
  CHECK(with_ten("class: Map, function: rename").find("keys: missing: a map of old and new") !=
        std::string::npos);
  CHECK(with_ten("class: Labels, table: {class: TestNumbers, size: 9}, prefix: t") ==
        at + "/table: it has 9 rows, and data/dataset has 10 examples: each needs its row, or a "
             "label of both that says which, by the key `by`");
  CHECK(with_ten("class: Labels, table: " + kTen) ==
        at + "/table: both data/table and the dataset have the label \"id\": choose `columns`, or "
             "give a `prefix`");
  CHECK(with_ten("class: Labels, by: id, prefix: t, table: {class: TestNumbers, size: 9}") ==
        at + "/by: data/table has no row with the \"id\" of example 9 of data/dataset");
  CHECK(with_ten("class: Labels, by: group, prefix: t, table: " + kTen) ==
        at + "/by: rows 0 and 1 of data/table have the same \"group\"");
}

}  // namespace levels_test
}  // namespace stepop
