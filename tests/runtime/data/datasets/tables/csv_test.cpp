#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace csv_test {

const std::string kImages = STEPOP_SOURCE_DIR "/tests/data/images/";

/// One table in a folder of its own.
struct Table {
  explicit Table(const std::string& content) : path(folder.write("a.csv", content)) {}

  std::string yaml(const std::string& more = "") const {
    return fmt::format("{{class: Csv, path: {}{}}}", path, more);
  }
  std::string message(const std::string& more = "") const {
    return message_of([&] { dataset_of(yaml(more)); });
  }

  ScratchFolder folder;
  std::string path;
};

TEST_CASE("columns are whole numbers, numbers or texts as all of their cells are") {
  const Table table(
      "a,b,c,d,target/class,id\n1,1.5,x,z,0,1\n-2,3, y,,+1,99999999999999999999\n 3 "
      ",1e-3,\"1\",NA,2,3\n");
  const auto dataset = dataset_of(table.yaml());
  REQUIRE(dataset->size() == 3);
  const Example example = example_of(*dataset, 1);
  CHECK(example.tensors.key_list() == "a, b, target/class");
  CHECK(example.texts.key_list() == "c, d, id");
  CHECK(describe_tensor(example.tensors.at("a")) == "int64 []");
  CHECK(describe_tensor(example.tensors.at("b")) == "float32 []");
  CHECK(example.texts.at("c") == " y");
  CHECK(example.texts.at("d").empty());
  CHECK(values_of<int64_t>(dataset->labels("a")) == std::vector<int64_t>{1, -2, 3});
  CHECK(values_of<float>(dataset->labels("b")) == std::vector<float>{1.5F, 3, 1e-3F});
  CHECK_FALSE(dataset->labels("c").defined());
  CHECK(dataset->label_keys() == std::vector<std::string>{"a", "b", "target/class"});
  const Batch batch = batch_of(*dataset, {2, 0});
  CHECK(values_of<int64_t>(batch["a"]) == std::vector<int64_t>{3, 1});
  CHECK(values_of<int64_t>(batch.at("target")["class"]) == std::vector<int64_t>{2, 0});
  CHECK(batch.text("c") == std::vector<std::string>{"1", "x"});
  CHECK(message_of([&] { batch_of(*dataset, {3}); }) == "there is no example 3: the dataset has 3");
}

TEST_CASE("the config sets types and keys and leaves columns out") {
  const Table table(",index,label,x,zip,note\n0,5,dog,1,01234,a\n1,6,cat,nan,1,b\n");
  const std::string yaml = table.yaml(
      ", missing: nan, columns: {index: {key: row}, label: {type: class, key: class}, x: float, "
      "zip: text, note: "
      "skip}");
  const auto dataset = dataset_of(yaml);
  const Example example = example_of(*dataset, 0);
  CHECK(example.tensors.key_list() == "row, class, x");
  CHECK(example.texts.key_list() == "zip");
  CHECK(example.texts.at("zip") == "01234");
  CHECK(values_of<int64_t>(dataset->labels("class")) == std::vector<int64_t>{1, 0});
  CHECK(std::isnan(values_of<float>(dataset->labels("x"))[1]));
  CHECK(unknown_keys_of(yaml).empty());
  const auto named = dataset_of(table.yaml(
      ", missing: nan, columns: {index: skip, label: {type: class, classes: [bird, dog, cat]}}"));
  CHECK(values_of<int64_t>(named->labels("label")) == std::vector<int64_t>{1, 2});
}

TEST_CASE("images are read relative to the table, with the other columns beside them") {
  const Table table("file,class\nimages/a.png,3\nimages/b.jpg,4\n");
  table.folder.write("images/a.png", read_plain_or_gzip(kImages + "rgb-8.png"));
  table.folder.write("images/b.jpg", read_plain_or_gzip(kImages + "rgb.jpg"));
  const std::string columns = ", columns: {file: {type: image, key: image}}";
  const auto dataset = dataset_of(table.yaml(columns));
  const Example example = example_of(*dataset, 1);
  CHECK(example.tensors.at("image").equal(read_image(kImages + "rgb.jpg")));
  CHECK(example.tensors.at("class").item<int64_t>() == 4);
  const Batch batch = batch_of(*dataset_of(table.yaml(columns + ", size: [4, 6]")), {0, 1});
  CHECK(describe_tensor(batch["image"]) == "float32 [2, 3, 4, 6]");
  CHECK(values_of<int64_t>(batch["class"]) == std::vector<int64_t>{3, 4});
}

TEST_CASE("a cell of another type is reported with file, line and column") {
  const Table table("a,b\n1,1\nx,1e99\nz,\n");
  CHECK(table.message(", columns: {a: int}") ==
        table.path + ":3: column \"a\": expected a whole number, found \"x\"");
  CHECK(
      table.message(", columns: {b: float}, missing: {b: nan}") ==
      table.path +
          ":3: column \"b\": expected a float32 number, found \"1e99\"; float32 has numbers up to "
          "3.4028235e38");
  CHECK(table.message(", columns: {a: {type: class, classes: ['1', x]}}") ==
        table.path + ":4: column \"a\": expected a class of 1, x, found \"z\"");
  CHECK(table.message(", columns: {a: {type: class, classes: ['1', y]}}") ==
        table.path + ":3: column \"a\": expected a class of 1, y, found \"x\"");
}

TEST_CASE("an image that is missing or damaged is reported with file, line and column") {
  const Table table("a\nnone.png\n");
  CHECK(table.message(", columns: {a: image}") ==
        table.path + ":2: column \"a\": no such file: " + table.folder.path("none.png"));
  table.folder.write("none.png", "GIF89a");
  const auto dataset = dataset_of(table.yaml(", columns: {a: image}"));
  CHECK(message_of([&] { batch_of(*dataset, {0}); }) ==
        "example 0: " + table.path + ":2: column \"a\": " + table.folder.path("none.png") +
            ": expected a PNG, JPEG or WebP, the file begins with 47 49 46 38");
}

TEST_CASE("a mistake in the columns' config is reported at its place") {
  const Table table("image,label\n1,2\n");
  CHECK(table.message(", columns: {labl: int}") ==
        "test.yaml:1: data/columns/labl: " + table.path +
            " has no such column; did you mean \"label\"? it has: image, label");
  CHECK(table.message(", columns: {label: integer}") ==
        "test.yaml:1: data/columns/label: expected a type: int, float, text, class, image, mask or "
        "skip; "
        "found \"integer\"");
  CHECK(table.message(", columns: {label: {typ: int}}") ==
        "test.yaml:1: data/columns/label/typ: unknown option \"typ\"; a column has type, key, "
        "classes and unknown");
  CHECK(table.message(", columns: {label: {key: 3}}") ==
        "test.yaml:1: data/columns/label/key: expected a text, found 3");
  CHECK(table.message(", columns: {label: {type: class, classes: x}}") ==
        "test.yaml:1: data/columns/label/classes: expected a list of texts, found \"x\"");
  CHECK(table.message(", columns: {label: {type: class, classes: [1]}}") ==
        "test.yaml:1: data/columns/label/classes: expected a list of texts, found in it 1");
  CHECK(table.message(", columns: {label: {classes: [a]}}") ==
        "test.yaml:1: data/columns/label: \"classes\" and \"unknown\" are for a column of \"type: "
        "class\"");
  CHECK(table.message(", columns: {label: {key: image}}") ==
        "test.yaml:1: data/columns/label: the key \"image\" is also that of the column \"image\"");
  CHECK(table.message(", columns: [image]") ==
        "test.yaml:1: data/columns: expected a map from columns to types, found [image]");
  CHECK(table.message(", columns: {image: skip, label: skip}") ==
        table.path + ": no column is left to read");
  CHECK(table.message(", separator: ', '") ==
        "test.yaml:1: data/separator: expected one character, as \",\" or \"\\t\", found \", \"");
}

TEST_CASE("a file with another separator is reported with the one that it has") {
  const auto said = [](const Table& table, const std::string& separator) {
    return fmt::format(
        "{0}:1: the header is one column whose name has \"{1}\": if that separates columns, set "
        "separator: \"{1}\"; separator: \",\" says that it does not",
        table.path, separator);
  };
  const Table semicolons("x;y\n1,5;2\n2;3\n");
  CHECK(semicolons.message() == said(semicolons, ";"));
  CHECK(semicolons.message(", separator: ;") == "no error");
  const Table tabs("x\ty\n1\t2\n");
  CHECK(tabs.message() == said(tabs, "\\t"));
  CHECK(tabs.message(", separator: \"\\t\"") == "no error");
  CHECK(Table("x;y\na\n").message(", separator: \",\"") == "no error");
}

TEST_CASE("a column with the name of the example's own index needs another key") {
  const Table table("index,x\n1,2\n");
  CHECK(table.message() ==
        table.path +
            ": the column \"index\" needs another key, as \"index\" is each example's "
            "place in the dataset: columns: {\"index\": {key: row}}, or leave it out: "
            "columns: {\"index\": skip}");
}

const std::string kHouses =
    "age,income,town,kind\n"
    "31,1.5,Ulm,a\n"
    ",2.5,,b\n"
    "29,NA,Bonn,a\n"
    "40, nan ,Kiel,\n";
const std::string kKind = ", columns: {kind: class}";

TEST_CASE("missing values are an error that counts them and says what helps") {
  const Table table(kHouses);
  CHECK(table.message() ==
        table.path +
            ": columns have missing values (empty, NA, NaN, null or None): age in 1 of 4 rows "
            "(first in line 3), income in 2 of 4 rows (first in line 4). In the dataset's config, "
            "\"missing: drop\" leaves out their rows, \"missing: nan\" reads numbers as NaN, "
            "\"missing: {age: mean}\" reads the mean of the others instead, \"missing: {age: 0}\" "
            "another value, and \"columns: {age: skip}\" leaves out the column");
  CHECK(table.message(", missing: error") == table.message());
  const std::string rest = table.message(kKind + ", missing: {age: 0, income: drop}");
  CHECK(rest.find(": a column has missing values (empty, NA, NaN, null or None): kind in 1 of 4 "
                  "rows (first in line 5). ") != std::string::npos);
  CHECK(table.message(", missing: nan, columns: {age: skip}") == "no error");
  CHECK(table.message(", missing: {income: error, age: 1}").find("income in 2 of 4 rows") !=
        std::string::npos);
}

TEST_CASE("rows with missing values are left out") {
  const Table table(kHouses);
  const auto dataset = dataset_of(table.yaml(", missing: drop"));
  REQUIRE(dataset->size() == 1);
  CHECK(example_of(*dataset, 0).texts.at("town") == "Ulm");
  CHECK(describe_tensor(example_of(*dataset, 0).tensors.at("age")) == "int64 []");
  const auto one = dataset_of(table.yaml(kKind + ", missing: {age: drop, kind: drop, income: 0}"));
  CHECK(values_of<int64_t>(one->labels("age")) == std::vector<int64_t>{31, 29});
  CHECK(values_of<float>(one->labels("income")) == std::vector<float>{1.5F, 0});
  CHECK(batch_of(*one, {1, 0}).text("town") == std::vector<std::string>{"Bonn", "Ulm"});
  const auto named = dataset_of(table.yaml(", missing: {town: drop, age: 0, income: 0}"));
  CHECK(named->size() == 3);
  CHECK(Table("a,b\n1,\n,2\n").message(", missing: drop").find(": each row lacks a value") !=
        std::string::npos);
}

TEST_CASE("missing numbers are read as NaN, or as the value that the config names") {
  const Table table(kHouses);
  const auto nan = dataset_of(table.yaml(", missing: nan"));
  REQUIRE(nan->size() == 4);
  CHECK(values_of<float>(nan->labels("age"))[0] == 31);
  CHECK(std::isnan(values_of<float>(nan->labels("age"))[1]));
  CHECK(std::isnan(values_of<float>(nan->labels("income"))[3]));
  CHECK(example_of(*nan, 1).texts.at("town").empty());
  const auto filled =
      dataset_of(table.yaml(kKind + ", missing: {age: 7, income: -0.5, town: nowhere, kind: b}"));
  CHECK(values_of<int64_t>(filled->labels("age")) == std::vector<int64_t>{31, 7, 29, 40});
  CHECK(values_of<float>(filled->labels("income")) == std::vector<float>{1.5F, 2.5F, -0.5F, -0.5F});
  CHECK(values_of<int64_t>(filled->labels("kind")) == std::vector<int64_t>{0, 1, 0, 1});
  CHECK(example_of(*filled, 1).texts.at("town") == "nowhere");
  CHECK(unknown_keys_of(table.yaml(", missing: {age: 7, income: nan}")).empty());
  CHECK(
      describe_tensor(dataset_of(table.yaml(", missing: {age: 0.5, income: 0}"))->labels("age")) ==
      "float32 [4]");
  // Columns of text, and those without a single value, stay as they are.
  const Table texts("a,b,c\nNA,,x\nNamibia,,\n");
  CHECK(dataset_of(texts.yaml())->size() == 2);
}

TEST_CASE("a rule for missing values that cannot be is reported at its place") {
  const Table table(kHouses);
  CHECK(
      table.message(", missing: 0") ==
      "test.yaml:1: data/missing: expected error, drop, nan, mean, median or a map from columns to "
      "the values to read instead, such as {age: 0}, found 0");
  CHECK(table.message(", missing: {age: [1]}") ==
        "test.yaml:1: data/missing/age: expected error, drop, nan, mean, median or the value to "
        "read instead, found [1]");
  CHECK(table.message(", missing: {agee: 1}") == "test.yaml:1: data/missing/agee: " + table.path +
                                                     " has no such column; did you mean \"age\"? "
                                                     "it has: age, income, town, kind");
  CHECK(table.message(", missing: {age: old}") ==
        "test.yaml:1: data/missing/age: expected a number, as the column holds, found \"old\"");
  CHECK(table.message(", columns: {age: int}, missing: {age: 0.5}") ==
        "test.yaml:1: data/missing/age: expected a whole number, as the column holds, found "
        "\"0.5\"");
  CHECK(table.message(", columns: {age: int}, missing: nan") ==
        "test.yaml:1: data/missing: the column \"age\" has missing values, and only floats can be "
        "NaN: columns: {age: float}");
}

TEST_CASE("a table of many columns is read") {
  std::string header = "c0";
  std::string row = "1";
  std::string gaps;
  for (int i = 1; i < 200'000; ++i) {
    header += ",c" + std::to_string(i);
    row += ",1";
    gaps += ",";
  }
  const Table table(header + "\n" + row + "\n");
  const auto dataset = dataset_of(table.yaml());
  CHECK(example_of(*dataset, 0).tensors.size() == 200'000);
  CHECK(values_of<int64_t>(dataset->labels("c199999")) == std::vector<int64_t>{1});
  const std::string unknown = table.message(", columns: {d: skip}");
  CHECK(unknown.ends_with(" and 199900 more"));
  const Table empty(header + "\n" + row + "\n" + gaps + "\n");
  CHECK(empty.message(", missing: error, columns: {c0: int}").find(" and 199990 more. In the") !=
        std::string::npos);
  const Table twice(header + ",c7\n" + row + ",1\n");
  CHECK(twice.message() == twice.path + ":1: two columns are named \"c7\"");
}

TEST_CASE("a table without rows is an error") {
  const Table table("a,b\n");
  CHECK(table.message() == table.path + ": holds no rows below its header");
  CHECK(message_of([&] { dataset_of("{class: Csv, path: " + table.folder.path("none") + "}"); }) ==
        "test.yaml:1: data/path: no such file: " + table.folder.path("none"));
}

}  // namespace csv_test
}  // namespace stepop
