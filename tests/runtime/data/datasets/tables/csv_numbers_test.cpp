// Numbers in tables, in one style or another.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace csv_numbers_test {

/// One table in a folder of its own.
struct Table {
  explicit Table(const std::string& content) : path(folder.write("a.csv", content)) {}

  std::string yaml(const std::string& more = "") const {
    return fmt::format("{{class: Csv, path: {}{}}}", path, more);
  }
  /// What is said of the table, without its path.
  std::string notice(const std::string& more = "") const {
    std::string text = dataset_of(yaml(more))->notice();
    const std::string before = "warning: " + path;
    return text.starts_with(before) ? text.substr(before.size()) : text;
  }
  std::string message(const std::string& more = "") const {
    std::string text = message_of([&] { dataset_of(yaml(more)); });
    return text.starts_with(path) ? text.substr(path.size()) : text;
  }

  ScratchFolder folder;
  std::string path;
};

TEST_CASE("numbers in another style are said to be a text, with what reads them") {
  const auto says = [](const std::string& cell, const std::string& advice) {
    const Table table("x,y\n1,a\n" + cell + ",b\n");
    const std::string plain = cell.starts_with('"') ? cell.substr(1, cell.size() - 2) : cell;
    CHECK(table.notice() == ":3: column \"x\": is read as text, as \"" + plain +
                                "\" is no number, which the cells look like; " + advice +
                                "; columns: {\"x\": text} says that it is a text");
    CHECK(table.notice(", columns: {x: text}").empty());
  };
  says("(12)", "where brackets mean less than 0, write a minus in the file");
  says("\u22125.5", "its minus is another character than -: replace it in the file");
  says("1_000", "take what is between thousands out of the file");
  says("0x1F", "numbers are read with ten as their base: write them so in the file");
  const std::string unit =
      "numbers are read without % and signs of currencies: take them out of the file";
  const std::string groups = "take what is between thousands out of the file";
  says("\"0,68\"", "decimal: \",\" reads decimal commas");
  says("\"1.234,56\"", "decimal: \",\" reads decimal commas");
  says("\"1,200\"",
       "decimal: \",\" reads it with a decimal comma; if the comma is between thousands, take it "
       "out of the file");
  says("\"1,234.5\"", groups);
  says("1 234", groups);
  says("1'234", groups);
  says("12%", unit);
  says("$3.50", unit);
  says("-3 €", unit);
  says("1e39", "float32 has numbers up to 3.4028235e38");
  says("1e999", "float32 has numbers up to 3.4028235e38");
  says("?", "an empty cell stands for a missing number, and \"missing\" says what becomes of it");
}

TEST_CASE("a text among many numbers is said, texts with numbers are texts") {
  std::string many = "x\n";
  for (int i = 0; i < 20; ++i) many += std::to_string(i) + "\n";
  CHECK(Table(many + "about 3\n").notice() ==
        ":22: column \"x\": is read as text, as \"about 3\" is no number, which 20 of 21 cells "
        "look like; an empty cell stands for a missing number, and \"missing\" says what becomes "
        "of it; columns: {\"x\": text} says that it is a text");
  for (const char* texts :
       {"x\n1\n2\nA/5 21171\n", "x\n2024-01-05\n2024-01-06\n", "x\n1.2.3\n1.3.0\n",
        "x\n12:30\n8:15\n", "x\n99999999999999999999\n11111111111111111111\n", "x\n-\n?\n",
        "x\nyes\nno\n"}) {
    CAPTURE(texts);
    CHECK(Table(texts).notice().empty());
  }
}

TEST_CASE("decimal commas are read") {
  const Table table("age;spend;n;note\n79,0;0,6817;1.234;1.234,5\n-8,25;1.234,56;12;a\n;1e2;7;b\n");
  const auto data =
      dataset_of(table.yaml(", separator: \";\", decimal: \",\", missing: {age: mean}"));
  CHECK(values_of<float>(data->labels("age")) == std::vector<float>{79, -8.25F, 35.375F});
  CHECK(values_of<float>(data->labels("spend")) == std::vector<float>{0.6817F, 1234.56F, 100});
  CHECK(values_of<int64_t>(data->labels("n")) == std::vector<int64_t>{1234, 12, 7});
  CHECK(example_of(*data, 0).texts.at("note") == "1.234,5");

  CHECK(table.message(", separator: \";\", columns: {spend: float}") ==
        ":2: column \"spend\": expected a float32 number, found \"0,6817\"; decimal: \",\" reads "
        "decimal commas");
  CHECK(table.message(", separator: \";\", decimal: \";\"") ==
        "test.yaml:1: data/decimal: expected \".\" or \",\", found \";\"");
  CHECK(table.message(", separator: \";\", columns: {age: skip}, vectors: {x: [n, spend]}")
            .find("is no number, which the cells look like; decimal: \",\" reads") !=
        std::string::npos);
  const Table points("x;y\n0.68;1,5\n");
  CHECK(points.message(", separator: \";\", decimal: \",\"") ==
        ":2: column \"x\": expected a number with a decimal comma, as \"decimal\" says, found "
        "\"0.68\"; columns: {\"x\": text} reads the column as text");
  const Table mixed("x;y\n0,68;1\n0.7;2\n");
  CHECK(mixed.message(", separator: \";\", decimal: \",\", columns: {x: float}")
            .find("found \"0.7\"") != std::string::npos);
}

TEST_CASE("the split that is fitted on another has its decimal commas") {
  const ScratchFolder folder;
  const auto train = folder.write("train.csv", "x;y\n1,5;1\n2,5;2\n;3\n");
  const auto more = folder.write("more.csv", "x;y\n7,5;1\n;2\n");
  const Config config(parse_yaml(
      fmt::format("datasets:\n  train: {{class: Csv, path: {}, separator: ';', decimal: ',', "
                  "missing: {{x: mean}}}}\n  validation: {{class: Csv, fit: train, path: {}}}\n",
                  train, more),
      {"test.yaml", 0}));
  const auto training = datasets().build(config, "datasets/train");
  const auto validation = datasets().build(config, "datasets/validation");
  CHECK(values_of<float>(validation->labels("x")) == std::vector<float>{7.5F, 2});
  CHECK(config.unknown_keys().empty());
}

TEST_CASE("the largest float32 is read as C and NumPy print it") {
  const Table table("x\n3.4028235e38\n-3.4028235e38\n1.5\n");
  CHECK(values_of<float>(dataset_of(table.yaml())->labels("x"))[0] ==
        std::numeric_limits<float>::max());
  CHECK(Table("x\n3.4028236e38\n").message(", columns: {x: float}") ==
        ":2: column \"x\": expected a float32 number, found \"3.4028236e38\"; float32 has numbers "
        "up to 3.4028235e38");
}

TEST_CASE("zeros that a column of numbers loses are said") {
  const Table table("zip,part,n\n501,1,0\n00501,01.5,-10\n02134,2,0.5\n");
  const auto data = dataset_of(table.yaml());
  CHECK(values_of<int64_t>(data->labels("zip")) == std::vector<int64_t>{501, 501, 2134});
  CHECK(table.notice() ==
        ":3: column \"zip\": \"00501\" is read as the number 501; columns: "
        "{\"zip\": text} keeps the zeros, and {\"zip\": int} says that it is a "
        "number\nwarning: " +
            table.path +
            ":3: column \"part\": \"01.5\" is read as the number 1.5; columns: "
            "{\"part\": text} keeps the zeros, and {\"part\": float} says that it "
            "is a number");
  CHECK(table.notice(", columns: {zip: int, part: text}").empty());
  CHECK(Table("x\n-01\n")
            .notice()
            .starts_with(":2: column \"x\": \"-01\" is read as the number -1;"));
}

}  // namespace csv_numbers_test
}  // namespace stepop
