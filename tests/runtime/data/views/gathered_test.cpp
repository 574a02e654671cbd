#include <doctest/doctest.h>

#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"
#include "tests/runtime/data/views/numbers.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace gathered_test {

/// Indices of three sequences of four examples, and of three partners.
void write_table(const ScratchFolder& folder) {
  folder.write("meta.yaml", "description: two views of a dataset\n");
  make_folders(folder.path("labels"));
  const std::string frames = folder.path("labels/frames-*-3x2x2-*-int64.npy");
  const std::string partner = folder.path("labels/partner-*-3-*-int64.npy");
  const auto write = [](const std::string& path, const std::vector<int64_t>& values) {
    write_file_atomically(path, {reinterpret_cast<const char*>(values.data()), 8 * values.size()});
  };
  write(frames, {0, 1, 2, 3, 5, 6, 7, 8, 9, 9, 0, 0});
  write(partner, {4, 4, 9});
}

std::string gathered(const ScratchFolder& folder, const std::string& more = "") {
  return fmt::format(
      "{{class: Gathered, table: {{class: Meta, path: '{}'}}, views: {{frames: frames, other: "
      "partner}}, dataset: {{class: TestNumbers, size: 10{}}}}}",
      folder.path(), more);
}

TEST_CASE("a table of indices groups the examples of another dataset") {
  const ScratchFolder folder;
  write_table(folder);
  const auto dataset = dataset_of(gathered(folder));
  CHECK(dataset->size() == 3);
  const Example example = example_of(*dataset, 1);
  CHECK(example.tensors.at("frames/id").sizes() == std::vector<int64_t>{2, 2});
  CHECK(values_of<int64_t>(example.tensors.at("frames/id")) == Ids{5, 6, 7, 8});
  CHECK(example.tensors.at("frames/value").sizes() == std::vector<int64_t>{2, 2, 2});
  CHECK(example.texts.at("frames/name/3") == "n8");
  CHECK(example.tensors.at("other/id").item<int64_t>() == 4);
  CHECK(example.texts.at("other/name") == "n4");

  const Batch batch = batch_of(*dataset, {2, 0});
  CHECK(batch.indices() == std::vector<int64_t>{2, 0});
  CHECK(batch["frames/id"].sizes() == std::vector<int64_t>{2, 2, 2});
  CHECK(values_of<int64_t>(batch["frames/id"]) == Ids{9, 9, 0, 0, 0, 1, 2, 3});
  CHECK(values_of<int64_t>(batch["other/id"]) == Ids{9, 4});
  CHECK(batch.text("frames/name/1") == std::vector<std::string>{"n9", "n1"});
  CHECK(batch.text("other/name") == std::vector<std::string>{"n9", "n4"});
}

TEST_CASE("labels are gathered without the examples") {
  const ScratchFolder folder;
  write_table(folder);
  const auto dataset = dataset_of(gathered(folder, ", run: 5"));
  TestNumbers::reads = 0;
  CHECK(dataset->labels("frames/group").sizes() == std::vector<int64_t>{3, 2, 2});
  CHECK(ids_of(*dataset, "frames/group") == Ids{0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0});
  CHECK(ids_of(*dataset, "other/group") == Ids{0, 0, 1});
  CHECK(!dataset->labels("id").defined());
  CHECK(TestNumbers::reads == 0);
  CHECK(dataset->label_keys() ==
        std::vector<std::string>{"frames/id", "frames/group", "other/id", "other/group"});
}

TEST_CASE("a wrong table of indices is reported with its place") {
  const ScratchFolder folder;
  write_table(folder);
  const auto with = [&](const std::string& views, int size) {
    return message_for(
        fmt::format("{{class: Gathered, table: {{class: Meta, path: '{}'}}, views: "
                    "{}, dataset: {{class: TestNumbers, size: {}}}}}",
                    folder.path(), views, size));
  };
  CHECK(with("{a: partner}", 9) ==
        "test.yaml:1: data/views/a: row 2 of \"partner\" names example 9, and data/dataset has 9");
  CHECK(with("{a: partne}", 10) ==
        "test.yaml:1: data/views/a: data/table has no label \"partne\" of whole numbers; its "
        "labels are: frames, partner");
  CHECK(with("partner", 10) ==
        "test.yaml:1: data/views: expected names with labels of the table, such as {frames: "
        "sequence}, found \"partner\"");
}

TEST_CASE("an example that cannot be read is named with both indices") {
  const ScratchFolder folder;
  write_table(folder);
  const auto dataset = dataset_of(gathered(folder, ", bad: 6"));
  CHECK(message_of([&] {
          batch_of(*dataset, {0, 1});
        }) == "example 1: example 6 of data/dataset: n6.png is damaged");
}

TEST_CASE("labels alone are a dataset that reads no example") {
  TestNumbers::reads = 0;
  const auto all = dataset_of("{class: LabelsOnly, dataset: {class: TestNumbers, bad: 3}}");
  CHECK(values_of<int64_t>(batch_of(*all, {3, 9})["group"]) == Ids{1, 3});
  CHECK(values_of<int64_t>(batch_of(*all, {3, 9})["id"]) == Ids{3, 9});
  CHECK(ids_of(*all) == ids_of(kTen));
  const auto one = dataset_of("{class: LabelsOnly, keys: [group], dataset: {class: TestNumbers}}");
  CHECK(one->label_keys() == std::vector<std::string>{"group"});
  CHECK(!example_of(*one, 0).tensors.contains("id"));
  CHECK(TestNumbers::reads == 0);
  CHECK(message_for("{class: LabelsOnly, keys: [grup], dataset: {class: TestNumbers}}") ==
        "test.yaml:1: data/keys: data/dataset has no label \"grup\"; its labels are: id, group");
}

}  // namespace gathered_test
}  // namespace stepop
