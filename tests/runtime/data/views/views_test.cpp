#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/data/views/example_function.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/runtime/data/views/numbers.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace views_test {

const std::string kTen = "{class: TestNumbers, size: 10}";

std::vector<int64_t> ids_of(const Dataset& dataset, const std::string& key = "id") {
  return values_of<int64_t>(dataset.labels(key));
}

std::vector<int64_t> ids_of(const std::string& yaml, const std::string& key = "id") {
  return ids_of(*dataset_of(yaml), key);
}

/// What building the dataset says.
std::string message_for(const std::string& yaml) {
  return message_of([&] { dataset_of(yaml); });
}

using Ids = std::vector<int64_t>;

TEST_CASE("a Subset is a range, a list or a fraction") {
  CHECK(ids_of("{class: Subset, range: [2, 5], dataset: " + kTen + "}") == Ids{2, 3, 4});
  CHECK(ids_of("{class: Subset, range: [1, 9, 3], dataset: " + kTen + "}") == Ids{1, 4, 7});
  CHECK(ids_of("{class: Subset, indices: [7, 0, 7], dataset: " + kTen + "}") == Ids{7, 0, 7});
  CHECK(ids_of("{class: Subset, fraction: 0.25, dataset: " + kTen + "}") == Ids{0, 1, 2});
  CHECK(ids_of("{class: Subset, fraction: [0.25, 0.5], dataset: " + kTen + "}") == Ids{3, 4});
}

TEST_CASE("the parts of a split share no example, leave none out, and follow the seed") {
  const auto part = [](const std::string& name, int seed) {
    return ids_of(
        fmt::format("{{class: Subset, part: {}, split: {{parts: {{train: 0.7, validation: "
                    "0.2, test: 0.1}}, seed: {}}}, dataset: {{class: TestNumbers, size: "
                    "1000}}}}",
                    name, seed));
  };
  std::set<int64_t> all;
  const std::map<std::string, size_t> sizes = {{"train", 700}, {"validation", 200}, {"test", 100}};
  for (const auto& [name, size] : sizes) {
    const Ids ids = part(name, 1);
    CHECK(ids.size() == size);
    CHECK(std::is_sorted(ids.begin(), ids.end()));
    all.insert(ids.begin(), ids.end());
    CHECK(part(name, 1) == ids);
    CHECK(part(name, 2) != ids);
  }
  CHECK(all.size() == 1000);
  // No stretch of the dataset goes to one part.
  const Ids test = part("test", 1);
  CHECK(test.front() < 100);
  CHECK(test.back() >= 900);
}

TEST_CASE("a split by a label's groups has no group on both sides") {
  const auto part = [](const std::string& name) {
    return ids_of(
        fmt::format("{{class: Subset, part: {}, split: {{parts: {{train: 0.8, validation: "
                    "0.2}}, groups: group}}, dataset: {{class: TestNumbers, size: 1000, "
                    "run: 7}}}}",
                    name),
        "group");
  };
  const Ids train = part("train");
  const Ids validation = part("validation");
  CHECK(train.size() + validation.size() == 1000);
  CHECK(std::abs(static_cast<int>(validation.size()) - 200) <= 7);
  const std::set<int64_t> groups(train.begin(), train.end());
  CHECK(groups.size() > 100);
  CHECK(std::none_of(validation.begin(), validation.end(),
                     [&](int64_t group) { return groups.contains(group); }));
}

TEST_CASE("a Mixture holds its sources in the proportions of the weights, evenly") {
  const std::string source = "{class: TestNumbers, size: ";
  const auto dataset =
      dataset_of("{class: Mixture, weights: [0.75, 0.25], source_key: from, datasets: [" + source +
                 "6}, " + source + "5, first: 100}]}");
  // Until all five of the second have come: 20, with the first one's six again and again.
  CHECK(ids_of(*dataset, "from") == Ids{0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK(ids_of(*dataset) == Ids{0, 1, 100, 2, 3, 4, 101, 5, 0, 1, 102, 2, 3, 4, 103, 5, 0, 1, 104});
  // Fewer examples than a source has are taken from all of it.
  CHECK(ids_of("{class: Mixture, weights: [1, 1], size: 8, datasets: [" + source + "100}, " +
               source + "2, first: 500}]}") == Ids{0, 500, 25, 501, 50, 500, 75, 501});
}

TEST_CASE("a large Mixture, Concat and range cost nothing, and find their examples") {
  const std::string huge = "{class: TestNumbers, size: 1000000000000}";
  const auto dataset = dataset_of(
      "{class: Subset, range: [5, 2000000000000, 2], dataset: {class: "
      "Concat, datasets: [" +
      huge + ", " + huge + "]}}");
  CHECK(dataset->size() == 999999999998);
  CHECK(example_of(*dataset, 499999999999).tensors.at("id").item<int64_t>() == 3);
  const auto mixed =
      dataset_of("{class: Mixture, weights: [9, 1], datasets: [" + huge + ", " + huge + "]}");
  CHECK(mixed->size() > 9'999'999'999'980);
  CHECK(example_of(*mixed, mixed->size() - 1).tensors.at("id").item<int64_t>() == 999999999999);
}

TEST_CASE("sequences do not cross the borders of a label") {
  const std::string source = "{class: TestNumbers, size: 10, run: 4}";  // 0-3, 4-7, 8-9
  const auto sequence = [&](const std::string& how) {
    return ids_of("{class: Sequence, " + how + ", dataset: " + source + "}");
  };
  CHECK(sequence("length: 3, within: group") == Ids{0, 1, 2, 1, 2, 3, 4, 5, 6, 5, 6, 7});
  CHECK(sequence("length: 2, every: 2, within: group") == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(sequence("length: 2, step: 3, within: group") == Ids{0, 3, 4, 7});
  CHECK(sequence("length: 5, every: 5") == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  // Where a number does not grow by one there is a border: here after 3 and 6.
  CHECK(
      ids_of("{class: Sequence, length: 3, consecutive: id, dataset: {class: Subset, indices: [1, "
             "2, 3, 5, 6, 8, 9, 10, 11], dataset: {class: TestNumbers, size: 20}}}") ==
      Ids{1, 2, 3, 8, 9, 10, 9, 10, 11});
}

TEST_CASE("the frames of a sequence are changed each by itself, or all alike") {
  const auto draws = [](const std::string& more) {
    const auto dataset = dataset_of("{class: Sequence, length: 4" + more +
                                    ", dataset: {class: TestNumbers, draws: true}}");
    return values_of<int64_t>(example_of(*dataset, 0).tensors.at("draw"));
  };
  const Ids own = draws("");
  CHECK(std::set<int64_t>(own.begin(), own.end()).size() == 4);
  const Ids alike = draws(", same_changes: true");
  CHECK(alike == Ids(4, alike[0]));
}

TEST_CASE("the frames of sequences come one by one, through a view as well") {
  const std::string sequence =
      "{class: Sequence, length: 2, every: 2, dataset: {class: TestNumbers, size: 6}}";
  const auto direct = dataset_of("{class: UnSequence, dataset: " + sequence + "}");
  const auto through = dataset_of(
      "{class: UnSequence, dataset: {class: Subset, range: [1, 3], dataset: " + sequence + "}}");
  CHECK(ids_of(*direct) == Ids{0, 1, 2, 3, 4, 5});
  CHECK(ids_of(*through) == Ids{2, 3, 4, 5});
  CHECK(example_of(*through, 3).texts.at("name") == "n5");
  CHECK(example_of(*through, 3).tensors.at("id").item<int64_t>() == 5);
  TestNumbers::reads = 0;
  example_of(*direct, 3);
  CHECK(TestNumbers::reads == 1);  // and not the whole sequence
}

TEST_CASE("partners share the label, are others where there are any, and differ each time") {
  const auto dataset = dataset_of(
      "{class: Joined, label: group, partners: 2, dataset: {class: TestNumbers, size: 10, run: "
      "3}}");
  CHECK(dataset->size() == 10);
  std::map<int64_t, std::map<int64_t, int>> seen;  // of each example, which partners how often
  for (uint64_t seed = 0; seed < 300; ++seed) {
    for (int64_t i = 0; i < 10; ++i) {
      Random random(seed * 10 + static_cast<uint64_t>(i));
      const Example example = dataset->get(i, random);
      CHECK(example.tensors.at("id").item<int64_t>() == i);
      const auto first = example.tensors.at("partner_1/id").item<int64_t>();
      const auto second = example.tensors.at("partner_2/id").item<int64_t>();
      CHECK(first / 3 == i / 3);
      CHECK(second / 3 == i / 3);
      if (i < 9) CHECK(std::set<int64_t>{i, first, second}.size() == 3);
      ++seen[i][first];
    }
  }
  CHECK(seen[9][9] == 300);  // alone in its group
  CHECK(seen[4].size() == 2);
  CHECK(seen[4][3] > 110);  // of 300 about 150 each
  CHECK(seen[4][5] > 110);
  CHECK(dataset->label_keys() == std::vector<std::string>{"id", "group"});
}

TEST_CASE("fixed partners are the same each time, and have labels") {
  const auto dataset = dataset_of(
      "{class: Joined, label: group, fixed: true, prefix: other, "
      "dataset: {class: TestNumbers, size: 12, run: 4}}");
  const Ids partners = ids_of(*dataset, "other/id");
  for (int64_t i = 0; i < 12; ++i) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      Random random(seed);
      CHECK(dataset->get(i, random).tensors.at("other/id").item<int64_t>() ==
            partners[static_cast<size_t>(i)]);
    }
  }
  CHECK(std::set<int64_t>(partners.begin(), partners.end()).size() > 3);
  const Batch batch = batch_of(*dataset, {3, 7, 1});
  CHECK(values_of<int64_t>(batch["other/id"]) == Ids{partners[3], partners[7], partners[1]});
  CHECK(batch.text("other/name")[0] == fmt::format("n{}", partners[3]));
}

/// Adds to `value`, and a random number to examples.
class TestAdd : public ExampleFunction {
 public:
  explicit TestAdd(const Config& params) : number_(params.get("number", 1.0)) {}
  Example operator()(Example example, Random& random) const override {
    example.tensors["value"].add_(number_ + 0.5 * static_cast<double>(random.below(2)));
    return example;
  }
  std::string key_after(const std::string& key) const override { return key == "id" ? "" : key; }

 private:
  double number_;
};
STEPOP_REGISTER_EXAMPLE_FUNCTION(test_add, TestAdd, {"For tests.", {{"number", "1", ""}}});

TEST_CASE("Map applies a function of one's own, with its parameters") {
  const auto dataset = dataset_of(
      "{class: Map, function: {class: test_add, number: 10}, dataset: {class: Cached, "
      "dataset: " +
      kTen + "}}");
  std::set<float> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    seen.insert(values_of<float>(dataset->get(3, random).tensors.at("value"))[0]);
  }
  CHECK(seen == std::set<float>{13, 13.5});  // what it changes in place stays whole in the cache
  CHECK(dataset->label_keys() == std::vector<std::string>{"group"});
  CHECK_FALSE(dataset->labels("id").defined());
}

TEST_CASE("select keeps keys and all below them, rename moves them, nothing is lost silently") {
  const std::string zip = "dataset: {class: Zip, datasets: {a: " + kTen + ", b: " + kTen + "}}}";
  const auto kept = dataset_of("{class: Map, function: {class: select, keys: [b, a/id]}, " + zip);
  CHECK(example_of(*kept, 2).tensors.key_list() == "a/id, b/id, b/group, b/value");
  CHECK(kept->label_keys() == std::vector<std::string>{"a/id", "b/id", "b/group"});
  const auto moved =
      dataset_of("{class: Map, function: {class: rename, keys: {b: target}}, " + zip);
  CHECK(batch_of(*moved, {2, 4}).at("target")["id"][1].item<int64_t>() == 4);
  CHECK(message_of([&] {
          example_of(*dataset_of("{class: Map, function: {class: rename, keys: {c: d}}, " + zip),
                     0);
        }) ==
        "rename: the examples have no \"c\"; tensors: a/id, a/group, a/value, b/id, b/group, "
        "b/value; texts: a/name, b/name");
  CHECK(message_of([&] {
          batch_of(*dataset_of("{class: Map, function: {class: rename, keys: {a: b}}, " + zip),
                   {0});
        }) == "rename: two values would be called \"b/id\"");
}

TEST_CASE("a key below another one is renamed by nested maps") {
  const auto dataset = dataset_of(
      "{class: Map, function: {class: rename, keys: {a: {id: number, group: x/y}}}, "
      "dataset: {class: Zip, datasets: {a: " +
      kTen + "}}}");
  CHECK(example_of(*dataset, 2).tensors.key_list() == "number, x/y, a/value");
  CHECK(message_for("{class: Map, function: {class: rename, keys: {a: {id: 3}}}, dataset: " + kTen +
                    "}") ==
        "test.yaml:1: data/function/keys/a/id: expected the new name of the "
        "key, found 3");
}

TEST_CASE("labels come from a table, row by row or by a number that both have") {
  const ScratchFolder folder;
  const std::string table =
      "{class: Csv, path: " +
      folder.write("ages.csv", "id,age,town\n3,30,Ulm\n1,10,Bonn\n2,20,Kiel\n") + "}";
  const std::string source = "{class: TestNumbers, size: 3, first: 1}";
  const auto by_row =
      dataset_of("{class: Labels, columns: [age], table: " + table + ", dataset: " + source + "}");
  CHECK(ids_of(*by_row, "age") == Ids{30, 10, 20});
  CHECK(example_of(*by_row, 0).tensors.at("age").item<int64_t>() == 30);
  CHECK_FALSE(example_of(*by_row, 0).texts.contains("town"));
  const auto by_id = dataset_of("{class: Labels, by: id, table: " + table +
                                ", dataset: {class: "
                                "Subset, indices: [2, 0, 0], dataset: " +
                                source + "}}");
  CHECK(ids_of(*by_id, "age") == Ids{30, 10, 10});
  CHECK(batch_of(*by_id, {0, 1}).text("town") == std::vector<std::string>{"Ulm", "Bonn"});
  const auto aside = dataset_of("{class: Labels, by: id, in_examples: false, table: " + table +
                                ", dataset: " + source + "}");
  CHECK_FALSE(example_of(*aside, 0).tensors.contains("age"));
  CHECK(ids_of(*aside, "age") == Ids{10, 20, 30});
}

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
  for (const char* gathers : {"false", "true"}) {
    const std::string bad =
        fmt::format("{{class: TestNumbers, size: 10, bad: 7, gathers: {}}}", gathers);
    const auto dataset = dataset_of(
        "{class: Subset, range: [2, 15], dataset: {class: Map, function: {class: rename, keys: "
        "{value: value}},"
        " dataset: {class: Concat, datasets: [{class: TestNumbers, size: 5, gathers: true}, " +
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

TEST_CASE("what a dataset has to say at the start is said once, through views") {
  const std::string source = "{class: TestNumbers, notice: \"3 rows left out\"}";
  CHECK(dataset_of("{class: Concat, datasets: [" + source + ", " + source +
                   ", {class: TestNumbers, notice: empty}]}")
            ->notice() == "3 rows left out; empty");
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
             "ends, such as [0.9, 1], within 0 and 1");
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
        at + "/weights/1: expected a number above 0, found 0");
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
            .find("data/function: unknown example function \"renam\"; known are: rename") !=
        std::string::npos);
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

}  // namespace views_test
}  // namespace stepop
