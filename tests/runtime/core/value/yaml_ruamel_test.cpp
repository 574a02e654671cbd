// Our reading of YAML against Python's ruamel.yaml; ruamel_table.py made the table.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/places.h"

namespace stepop {
namespace yaml_ruamel_test {

using Json = nlohmann::json;

Value from_table(const Json& typed) {
  if (typed.contains("map")) {
    Value::Map map;
    for (const auto& entry : typed["map"])
      map.set(entry[0].get<std::string>(), from_table(entry[1]));
    return map;
  }
  if (typed.contains("list")) {
    Value::List list;
    for (const auto& item : typed["list"]) list.push_back(from_table(item));
    return list;
  }
  const auto type = typed[0].get<std::string>();
  const auto text = typed[1].get<std::string>();
  if (type == "null") return {};
  if (type == "bool") return text == "true";
  if (type == "int") return static_cast<int64_t>(std::stoll(text));
  if (type == "float") return std::stod(text);
  return text;
}

TEST_CASE("documents read as ruamel.yaml reads them") {
  std::ifstream table(STEPOP_SOURCE_DIR "/tests/runtime/core/value/ruamel_table.txt");
  REQUIRE(table.good());
  int documents = 0;
  for (std::string line; std::getline(table, line); ++documents) {
    const Json row = Json::parse(line);
    const auto document = row[0].get<std::string>();
    CAPTURE(document);
    std::string ours;
    try {
      ours = flow_yaml(parse_yaml(document, {"test.yaml", 0}));
    } catch (const UsageError& error) {
      ours = "refused";
    }
    CHECK(ours == (row[1].is_null() ? "refused" : flow_yaml(from_table(row[1]))));
  }
  CHECK(documents > 400);
}

}  // namespace yaml_ruamel_test
}  // namespace stepop
