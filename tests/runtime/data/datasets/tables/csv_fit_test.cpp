// Csv: statistics and classes of the training rows, folds, vectors.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/data/dataset.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace csv_fit_test {

const std::string kTrain =
    "age,income,town,price,rent\n"
    "30,1.5,Ulm,100,5\n"
    ",2.5,Bonn,200,6\n"
    "20,NA,Ulm,300,7\n"
    "40,9,Bonn,400,8\n";
const std::string kMore =
    "age,income,town,price,rent\n"
    ",,Kiel,1,2\n"
    "7,8,Ulm,3,4\n";

/// A train and a validation table, and the config of a run with both.
struct Tables {
  Tables() : train(folder.write("train.csv", kTrain)), more(folder.write("more.csv", kMore)) {}

  Config config(const std::string& train_params, const std::string& validation) const {
    return Config(parse_yaml(fmt::format("datasets:\n  train: {{class: Csv, path: {}{}}}\n"
                                         "  validation: {{class: Csv, {}}}\n",
                                         train, train_params, validation),
                             {"test.yaml", 0}));
  }
  std::string message(const std::string& train_params, const std::string& validation) const {
    return message_of(
        [&] { datasets().build(config(train_params, validation), "datasets/validation"); });
  }

  ScratchFolder folder;
  std::string train;
  std::string more;
};

TEST_CASE("a mean or median of the training rows fills missing values of both splits") {
  const Tables tables;
  const Config config =
      tables.config(", missing: {age: mean, income: median}", "fit: train, path: " + tables.more);
  const auto validation = datasets().build(config, "datasets/validation");
  const auto train = datasets().build(config, "datasets/train");
  CHECK(values_of<float>(train->labels("age")) == std::vector<float>{30, 30, 20, 40});
  CHECK(values_of<float>(train->labels("income")) == std::vector<float>{1.5F, 2.5F, 2.5F, 9});
  CHECK(values_of<float>(validation->labels("age")) == std::vector<float>{30, 7});
  CHECK(values_of<float>(validation->labels("income")) == std::vector<float>{2.5F, 8});
  CHECK(train->notice() == tables.train +
                               ": filled missing values of age in 1 row by 30, the mean in "
                               "training, income in 1 row by 2.5, the median in training");
  CHECK(config.get<double>("datasets/train/fills/income") == 2.5);
  CHECK(config.unknown_keys().empty());
}

TEST_CASE("the config of a run keeps what was fitted, and new rows take it without the table") {
  const Tables tables;
  const std::string params =
      ", missing: {age: mean}, columns: {income: skip, town: {type: class, unknown: id}}, "
      "vectors: {x: [age], y: [price, rent]}";
  const Config first = tables.config(params, "fit: train, path: " + tables.more);
  datasets().build(first, "datasets/validation");
  const std::string saved = to_yaml(*first.root().peek());
  CHECK(saved.find("\nclass_names:\n  town: [Bonn, Ulm]") != std::string::npos);
  // The table has become another one; the numbers stay those of the run.
  tables.folder.write("train.csv", "age,income,town,price,rent\n1000,1,Ulm,1,1\n");
  tables.folder.write("more.csv", "town,age\nKiel,\nUlm,3\n");
  Value again = parse_yaml(saved, {"b.yaml", 0});
  again.find("datasets")
      ->as_map()
      .set("predict",
           parse_yaml("{class: Csv, fit: train, path: " + tables.more + "}", {"b.yaml", 0}));
  const Config second(again);
  const auto rows = datasets().build(second, "datasets/predict");
  CHECK(example_of(*rows, 0).tensors.key_list() == "town, x");
  CHECK(values_of<float>(rows->labels("x")) == std::vector<float>{30, 3});
  CHECK(values_of<int64_t>(rows->labels("town")) == std::vector<int64_t>{2, 1});
  CHECK(rows->notice() ==
        tables.more +
            ": without income, price, rent, which the training table has; filled "
            "missing values of age in 1 row by 30, the mean in training; column \"town\": "
            "no example of \"Bonn\"");
}

TEST_CASE(
    "classes are those of the training rows; another text has the id behind them or an error") {
  const Tables tables;
  const std::string missing = ", missing: {age: 0, income: 0}, columns: {town: ";
  const Config config =
      tables.config(missing + "{type: class, unknown: id}}", "fit: train, path: " + tables.more);
  CHECK(values_of<int64_t>(datasets().build(config, "datasets/validation")->labels("town")) ==
        std::vector<int64_t>{2, 1});
  CHECK(tables.message(missing + "class}", "fit: train, path: " + tables.more) ==
        tables.more +
            ":2: column \"town\": expected a class of the training: Bonn, Ulm (class_names/town; "
            "with "
            "\"unknown: id\" any other has the number 2), found \"Kiel\"");
}

TEST_CASE("each row is held out in one fold of five, and the other folds train") {
  ScratchFolder folder;
  std::string text = "row,group\n";
  for (int i = 0; i < 103; ++i) text += fmt::format("{},{}\n", i, i / 7);
  const std::string path = folder.write("a.csv", text);
  const auto rows = [&](int fold, const std::string& part, const std::string& more = "") {
    const auto dataset = dataset_of(fmt::format(
        "{{class: Csv, path: {}, folds: 5, fold: {}, part: {}{}}}", path, fold, part, more));
    return values_of<int64_t>(dataset->labels("row"));
  };
  std::vector<int64_t> seen;
  for (int fold = 0; fold < 5; ++fold) {
    const auto held_out = rows(fold, "validation");
    CHECK((held_out.size() == 20 || held_out.size() == 21));
    CHECK(std::is_sorted(held_out.begin(), held_out.end()));
    seen.insert(seen.end(), held_out.begin(), held_out.end());
    auto all = rows(fold, "train");
    all.insert(all.end(), held_out.begin(), held_out.end());
    CHECK(std::set<int64_t>(all.begin(), all.end()).size() == 103);
    CHECK(all.size() == 103);
  }
  std::sort(seen.begin(), seen.end());
  for (int64_t i = 0; i < 103; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
  CHECK(rows(0, "validation") != rows(0, "validation", ", fold_seed: 2"));
  CHECK(rows(0, "validation") == rows(0, "validation", ", fold_seed: 1"));
  const auto by_group = rows(3, "validation", ", fold_by: group");
  std::set<int64_t> groups;
  for (const int64_t row : by_group) groups.insert(row / 7);
  CHECK(groups.size() == 3);
  for (const int64_t row : rows(3, "train", ", fold_by: group")) CHECK(!groups.contains(row / 7));
}

TEST_CASE("rows know their place in the file through dropped rows, folds and subsets") {
  ScratchFolder folder;
  std::string text = "row,x\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i, i % 10 == 3 ? "" : "1");
  const std::string csv = "{class: Csv, missing: drop, path: " + folder.write("a.csv", text);
  const auto check = [](const Dataset& dataset) {
    const auto found = dataset.source_rows();
    REQUIRE(found.has_value());
    CHECK(found->count == 40);
    CHECK(values_of<int64_t>(found->rows) == values_of<int64_t>(dataset.labels("row")));
  };
  const std::string fold = csv + ", folds: 4, fold: 2, part: validation}";
  check(*dataset_of(csv + "}"));
  check(*dataset_of(fold));
  check(*dataset_of("{class: Subset, range: [2, 8, 2], dataset: " + fold + "}"));
  check(*dataset_of("{class: Subset, indices: [5, 0], dataset: {class: Cached, dataset: " + fold +
                    "}}"));
  check(
      *dataset_of("{class: Standardized, mean: {x: 0}, std: {x: 1}, keys: [x], dataset: "
                  "{class: LabelsOnly, dataset: " +
                  fold + "}}"));

  text = "row\n0\n1\n2\n";
  const std::string whole = "{class: Csv, path: " + folder.write("b.csv", text) + "}";
  CHECK_FALSE(dataset_of(whole)->source_rows());
  CHECK_FALSE(dataset_of("{class: Concat, datasets: [" + fold + ", " + fold + "]}")->source_rows());
  const auto part = dataset_of("{class: Subset, range: [1, 3], dataset: " + whole + "}");
  REQUIRE(part->source_rows());
  CHECK(part->source_rows()->count == 3);
  CHECK(values_of<int64_t>(part->source_rows()->rows) == std::vector<int64_t>{1, 2});
}

TEST_CASE("in folds the statistics are those of the rows that train") {
  ScratchFolder folder;
  std::string text = "x,y\n";
  for (int i = 0; i < 40; ++i)
    text += i % 4 == 0 ? fmt::format(",{}\n", i) : fmt::format("{0},{0}\n", i);
  folder.write("a.csv", text);
  const Config config(parse_yaml(
      "datasets:\n  train: {class: Csv, path: " + folder.path("a.csv") +
          ", folds: 4, fold: 1, missing: {x: mean}}\n  validation: {class: Csv, fit: train, part: "
          "validation}\n",
      {"test.yaml", 0}));
  const auto validation = datasets().build(config, "datasets/validation");
  const auto train = datasets().build(config, "datasets/train");
  CHECK(train->size() == 30);
  CHECK(validation->size() == 10);
  double sum = 0;
  int count = 0;
  for (const int64_t y : values_of<int64_t>(train->labels("y"))) {
    sum += y % 4 == 0 ? 0 : static_cast<double>(y);
    count += y % 4 == 0 ? 0 : 1;
  }
  CHECK(config.get<double>("datasets/train/fills/x") ==
        doctest::Approx(sum / count).epsilon(1e-12));
  const auto filled = static_cast<float>(config.get<double>("datasets/train/fills/x"));
  for (const auto& dataset : {train.get(), validation.get()}) {
    const auto x = values_of<float>(dataset->labels("x"));
    const auto y = values_of<int64_t>(dataset->labels("y"));
    for (size_t i = 0; i < y.size(); ++i) {
      CHECK(x[i] == (y[i] % 4 == 0 ? filled : static_cast<float>(y[i])));
    }
  }
}

TEST_CASE("columns are put side by side under one key, with masks of what was missing") {
  const Tables tables;
  const auto dataset = dataset_of(fmt::format(
      "{{class: Csv, path: {}, missing: {{age: median, income: 0}}, masks: true, columns: {{age: "
      "{{key: years}}}}, vectors: {{x: [age, income, age_missing], y: [price, rent]}}}}",
      tables.train));
  const Example example = example_of(*dataset, 1);
  CHECK(example.tensors.key_list() == "income_missing, x, y");
  CHECK(example.texts.key_list() == "town");
  CHECK(values_of<float>(example.tensors.at("x")) == std::vector<float>{30, 2.5F, 1});
  CHECK(describe_tensor(example.tensors.at("income_missing")) == "bool []");
  const Batch batch = batch_of(*dataset, {2, 0});
  CHECK(describe_tensor(batch["y"]) == "float32 [2, 2]");
  CHECK(values_of<float>(batch["y"]) == std::vector<float>{300, 7, 100, 5});
  CHECK(dataset->label_keys() == std::vector<std::string>{"income_missing", "x", "y"});
}

TEST_CASE("what cannot be fitted, split or put side by side is reported at its place") {
  const Tables tables;
  const auto message = [&](const std::string& more) {
    return message_of(
        [&] { dataset_of(fmt::format("{{class: Csv, path: {}, {}}}", tables.train, more)); });
  };
  const std::string data = "test.yaml:1: data/";
  const std::string fill = "missing: {age: 0, income: 0}, ";
  CHECK(message("missing: {town: mean}") ==
        data + "missing/town: the column \"town\" is not one of floats, which have a mean");
  CHECK(message("missing: {age: median}, columns: {age: int}") ==
        data +
            "missing/age: the column \"age\" is not one of floats, which have a median: columns: "
            "{age: float}");
  CHECK(message(fill + "fold: 2") == data + "fold: goes with \"folds\", the number of folds");
  CHECK(message(fill + "folds: 9, fold: 0") ==
        data + "folds: expected at most 4, the number of rows, found 9");
  CHECK(message(fill + "folds: 3, fold: 3") ==
        data + "fold: expected 0 to 2, as folds count from 0, found 3");
  CHECK(message(fill + "folds: 2, fold: 0, part: test") ==
        data + "part: expected train or validation, found \"test\"");
  CHECK(message(fill + "vectors: {x: [age, town]}") ==
        data + "vectors/x: the column \"town\" is not one of numbers");
  CHECK(message(fill + "vectors: {x: [ages]}") ==
        data + "vectors/x: no column \"ages\"; there are: age, income, town, price, rent");
  CHECK(message(fill + "vectors: {x: age}") ==
        data + "vectors/x: expected a list of columns, found \"age\"");
  CHECK(message(fill + "vectors: {town: [age]}") ==
        data + "vectors/town: the key \"town\" is also that of the column \"town\"");
  CHECK(message("missing: drop, masks: true") ==
        data + "masks: no column has its missing values filled: missing: {age: mean}");
  CHECK(message("missing: {age: mean, income: 0}, fills: {age: old}") ==
        data + "fills/age: expected a number, found \"old\"");
  CHECK(message(fill + "fit: train") ==
        data +
            "fit: expected the name of a split whose dataset is a Csv, or has one inside, such as "
            "train; datasets/train is not there, there are: none");
  CHECK(tables.message("", "fit: validation") ==
        "test.yaml:3: datasets/validation/fit: datasets/validation is this dataset itself; leave "
        "out \"fit\", and it is fitted on its own examples");
  CHECK(
      tables.message(", missing: {age: 0, income: 0}",
                     "fit: train, missing: {age: mean, income: 0}, path: " + tables.more) ==
      "test.yaml:3: datasets/validation/missing/age: datasets/train has no mean or median of that "
      "column: give it the same \"missing\"");
}

}  // namespace csv_fit_test
}  // namespace stepop
