#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/data/views/example_function.h"
#include "tests/runtime/data/views/numbers.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace views_test {

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

}  // namespace views_test
}  // namespace stepop
