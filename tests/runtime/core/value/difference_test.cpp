#include "runtime/core/value/difference.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace difference_test {

Value yaml(const std::string& text) { return parse_yaml(text, {"test.yaml", 0}); }

/// The lines of what differs between two configs in YAML.
std::string lines(const std::string& before, const std::string& now) {
  return describe(differences(yaml(before), yaml(now)));
}

TEST_CASE("a changed, an added and a removed value stand in one line each, by their paths") {
  CHECK(lines("optimizer: {class: Adam, lr: 3e-3}\nnum_epochs: 10\nextra: {note: \"x y\"}",
              "num_epochs: 20\noptimizer: {lr: 1e-3, class: Adam}\neval_hook: {freq: 2e}") ==
        "  optimizer/lr: 0.003 -> 0.001\n"
        "  num_epochs: 10 -> 20\n"
        "  - extra/note: \"x y\"\n"
        "  + eval_hook/freq: 2e");
  const auto found = differences(yaml("a: 1\nb: 2"), yaml("a: 3\nc: 4"));
  const std::vector<ConfigDifference> expected = {
      {"a", "1", "3"}, {"b", "2", std::nullopt}, {"c", std::nullopt, "4"}};
  CHECK((found == expected));
}

TEST_CASE("equal configs differ in nothing, whatever the order of their keys") {
  CHECK(lines("a: {b: 1, c: [1, {d: x}]}", "a: {c: [1, {d: x}], b: 1}") == "");
  CHECK(lines("", "") == "");
  CHECK(lines("a: .nan", "a: .nan") == "");
}

TEST_CASE("what reads the same is no difference, another type that reads otherwise is") {
  CHECK(lines("lr: 1\nsteps: 1e5", "lr: 1.0\nsteps: 100000") == "");
  CHECK(lines("a: 1", "a: 1.5") == "  a: 1 -> 1.5");
  CHECK(lines("a: 1s", "a: 2026-11-21") == "  a: 1s -> 2026-11-21");
  CHECK(lines("a: 1", "a: \"\"") == "  a: 1 -> \"\"");
  CHECK(lines("a: 1", "a: \"1\"") == "  a: 1 -> \"1\"");
  CHECK(lines("a: 1", "a: true") == "  a: 1 -> true");
  CHECK(lines("a: null", "b: null") == "");
  CHECK(lines("a: null", "a: 1") == "  + a: 1");
  CHECK(lines("a: 1", "a: null") == "  - a: 1");
}

TEST_CASE("a component by its name is the map with its class") {
  CHECK(lines("model: LeNet", "model: {class: LeNet}") == "");
  CHECK(lines("model: LeNet", "model: {class: LeNet, classes: 26}") == "  + model/classes: 26");
  CHECK(lines("model: {class: LeNet, classes: 26}", "model: MLP") ==
        "  model/class: LeNet -> MLP\n  - model/classes: 26");
  CHECK(lines("lr: fast", "lr: {from: 1}") == "  lr: fast -> {from: 1}");
}

TEST_CASE("lists of equal length are compared element by element, others as wholes") {
  CHECK(lines("hidden: [120, 84]", "hidden: [120, 64]") == "  hidden/1: 84 -> 64");
  CHECK(lines("groups: [{match: bias, lr: 1}, {match: norm}]",
              "groups: [{match: bias, lr: 2}, {match: norm}]") == "  groups/0/lr: 1 -> 2");
  CHECK(lines("hidden: [120, 84]", "hidden: [120]") == "  hidden: [120, 84] -> [120]");
  CHECK(lines("a: [1]", "a: 1") == "  a: [1] -> 1");
  CHECK(lines("a: 1", "a: [1, b]\nc: []\nd: {}\ne: {f: {}}") ==
        "  a: 1 -> [1, b]\n  + c: []\n  + d: {}\n  + e/f: {}");
  CHECK(lines("a: {b: {}}", "a: {}") == "  - a/b: {}");
}

TEST_CASE("long values are cut so that the difference is still seen") {
  const std::string same(100, 'x');
  CHECK(lines("a: " + same, "a: y") == "  a: " + same.substr(0, 80) + "... -> y");
  CHECK(lines("a: " + same + "1", "a: " + same + "2") ==
        "  a: ..." + same.substr(0, 20) + "1 -> ..." + same.substr(0, 20) + "2");
  // Never inside of a character: each of these takes two bytes, the quote one.
  std::string umlauts;
  for (int i = 0; i < 60; ++i) umlauts += "\u00fc";
  CHECK(lines("", "a: \"" + umlauts + "\"") == "  + a: \"" + umlauts.substr(0, 78) + "...");
  CHECK(lines("a: \"one\\ntwo\"", "a: one") == "  a: \"one\\ntwo\" -> one");
}

}  // namespace difference_test
}  // namespace stepop
