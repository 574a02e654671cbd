#include "runtime/tools/report/config_table.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace config_table_test {

std::vector<ConfigRow> table_of(const std::vector<std::string>& texts) {
  std::vector<Value> configs;
  for (const auto& text : texts) configs.push_back(parse_yaml(text, {}));
  return compare_configs(configs);
}

TEST_CASE("each key that differs is a row with the value of every config") {
  const auto rows = table_of({"lr: 0.1\nname: a\nsame: 1\n", "lr: 0.2\nname: a\nsame: 1.0\n",
                              "lr: 0.1\nname: a\nsame: 1\nmore: {x: 2e}\n"});
  const std::vector<ConfigRow> expected = {{"lr", {"0.1", "0.2", "0.1"}},
                                           {"more/x", {std::nullopt, std::nullopt, "2e"}}};
  CHECK((rows == expected));
}

TEST_CASE("configs that say the same have no rows") {
  CHECK(table_of({"model: LeNet\n", "model: {class: LeNet}\n"}).empty());
  CHECK(table_of({"a: 1\n"}).empty());
}

TEST_CASE("a list that differs as a whole in one and in an element in another shows both") {
  const auto rows = table_of({"list: [1, 2]\n", "list: [1, 2, 3]\n", "list: [1, 9]\n"});
  const std::vector<ConfigRow> expected = {{"list", {"[1, 2]", "[1, 2, 3]", "[1, 9]"}},
                                           {"list/1", {"2", "2", "9"}}};
  CHECK((rows == expected));
}

}  // namespace config_table_test
}  // namespace stepop
