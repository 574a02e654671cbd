// Whatever the bytes of a config are, it is read or refused with a UsageError; and what was read is
// written so that it reads back the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "runtime/core/config/config.h"
#include "runtime/core/config/merge.h"
#include "runtime/core/config/references.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_scalar.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/fuzz.h"
#include "tests/runtime/core/value/random_values.h"

namespace stepop {
namespace fuzz_test {

/// The configs that come of a text, alone and merged over another; none when it is refused with a
/// UsageError. Any other exception fails the test.
std::vector<Value> configs_of(const std::string& text) {
  try {
    const Value root = parse_yaml(text, {"fuzz.yaml", 0});
    Value merged = parse_yaml("a: {b: [1, {c: 2}], d: 3}\nlr: 1e-3\n", {"base.yaml", 0});
    merge(merged, root);
    if (merged.is_map()) {
      const Value copy = merged;
      apply_overrides(merged, {{"x", copy}, {"y/z/+", 3}, {"w", Value("{y}")}});
    }
    std::vector<Value> configs = {root, merged};
    for (auto& config : configs) resolve_references(config);
    return configs;
  } catch (const UsageError& error) {
    REQUIRE(std::string(error.what()).size() > 10);
    return {};
  }
}

/// Whether the text is a config; what is read must be written and read again without a mistake.
bool survives(const std::string& text) {
  const std::vector<Value> configs = configs_of(text);
  for (const Value& config : configs) {
    const std::string written = to_yaml(escape_references(config));
    CAPTURE(written);
    Value again = parse_yaml(written, {"again.yaml", 0});
    resolve_references(again);
    REQUIRE(again == config);
    REQUIRE(parse_yaml(flow_yaml(config), {"flow.yaml", 0}) == config);
    Config(config).unknown_keys();
  }
  return !configs.empty();
}

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> texts = {
      "a: 1\nb:\n  c: [1, 2.5, x]\n  d: {e: null, f: true}\n",
      "model: {class: LeNet, hidden: [120, 84]}\nlr: '{model/hidden/0}'\nx: {lr}\n",
      "a: &x {b: 1}\nc: {<<: *x, d: 2}\ne: [*x, *x]\n",
      "list:\n- a: 1\n  b: |\n    text\n    more\n- >-\n  folded\n  text\n- 'it''s'\n- "
      "\"a\\x41\\u00e4\\n\"\n",
      "a: !replace {b: 1}\nc: !remove\nd: !!str 12\ne: !!float 3\n",
      "? complex\n: value\n? [a]\n: 1\n",
      "%YAML 1.2\n---\na: 0x1F\nb: 0o17\nc: .inf\nd: -.INF\ne: .nan\nf: 1_000\n...\n",
      "{a: {b: {c: [[[]], {}]}}, \"q\": 'r', s: {{t}}, u: '{{v}}'}",
      "# comment\na: 1 # more\n\n\nb: text # c\n'k': [\n 1,\n 2 ]\n\xc3\xa4: \xf0\x9f\x98\x80\n",
  };
  return texts;
}

std::string mutated(std::string text, RandomValues& random) {
  static const std::string marks = "{}[]:,-?&*!|>'\"%@`#~<=.\\/ \t\n\r01eax";
  for (size_t i = 1 + random.below(8); i > 0; --i) {
    const size_t at = random.below(text.size() + 1);
    const size_t length = std::min(text.size() - at, random.below(12));
    const std::string& other = seeds()[random.below(seeds().size())];
    const size_t from = random.below(other.size());
    switch (random.below(7)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, 1, marks[random.below(marks.size())]);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(at, other.substr(from, random.below(20)));
        break;
      case 4:
        text.insert(at, 1, static_cast<char>(random.below(256)));
        break;
      case 5:
        text.insert(at, std::string(random.below(6), marks[random.below(marks.size())]));
        break;
      default:
        if (at < text.size()) text[at] = marks[random.below(marks.size())];
    }
  }
  return text;
}

TEST_CASE("mutated configs are read or refused, and nothing else") {
  const uint64_t seed = fuzz_seed();
  const uint64_t count = fuzz_count(20000);
  RandomValues random(seed);
  FuzzWatch watch("YAML", seed);
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string text = mutated(seeds()[random.below(seeds().size())], random);
    CAPTURE(seed);
    CAPTURE(i);
    CAPTURE(quoted_yaml(text));
    bool is_accepted = false;
    watch.run(i, [&] { REQUIRE_NOTHROW(is_accepted = survives(text)); });
    accepted += is_accepted ? 1 : 0;
  }
  // The mutations are mild enough that both ends are reached.
  CHECK(accepted > count / 20);
  CHECK(accepted < count * 19 / 20);
}

TEST_CASE("random bytes are read or refused, and nothing else") {
  const uint64_t seed = fuzz_seed();
  CAPTURE(seed);
  RandomValues random(seed);
  const uint64_t count = fuzz_count(20000) / 4;
  FuzzWatch watch("bytes as YAML", seed);
  for (uint64_t i = 0; i < count; ++i) {
    std::string text(random.below(40), ' ');
    const bool is_ascii = random.below(2) == 0;
    for (char& c : text) c = static_cast<char>(random.below(is_ascii ? 128 : 256));
    CAPTURE(i);
    CAPTURE(quoted_yaml(text));
    watch.run(i, [&] { REQUIRE_NOTHROW(survives(text)); });
  }
}

/// Keys k0 to k<keys - 1>, whose values have references to one another and lie in lists.
std::string web(size_t keys, RandomValues& random) {
  std::string text;
  for (size_t key = 0; key < keys; ++key) {
    const size_t depth = random.below(4) == 0 ? random.below(180) : 0;
    text += "k" + std::to_string(key) + ": " + std::string(depth, '[');
    const size_t links = 1 + random.below(3);
    // Most lead to keys near by: forwards in chains, backwards, or in circles.
    for (size_t link = 0; link < links; ++link) {
      const size_t near = (key + random.below(5)) % keys;
      const size_t other = random.below(8) == 0 ? random.below(keys) : near;
      const bool is_number = other == key || random.below(8) == 0;
      const std::string value = is_number ? "1" : "'{k" + std::to_string(other) + "}'";
      text += links == 1 ? value : (link == 0 ? "[" : ", ") + value;
    }
    text += std::string(links == 1 ? 0 : 1, ']') + std::string(depth, ']') + "\n";
  }
  return text;
}

TEST_CASE("webs of references are resolved or refused, and nothing else") {
  const uint64_t seed = fuzz_seed();
  RandomValues random(seed);
  FuzzWatch watch("references", seed);
  for (uint64_t i = 0; i < fuzz_count(20000) / 40; ++i) {
    const std::string text = web(1 + random.below(random.below(20) == 0 ? 3000 : 30), random);
    CAPTURE(seed);
    CAPTURE(i);
    watch.run(i, [&] {
      try {
        Value root = parse_yaml(text, {"web.yaml", 0});
        resolve_references(root);
      } catch (const UsageError& error) {
        REQUIRE(std::string(error.what()).starts_with("web.yaml:"));
      }
    });
  }
}

TEST_CASE("deep and long inputs of each shape end in time") {
  FuzzWatch watch("shapes of YAML", 0);
  uint64_t number = 0;
  const std::string openings[] = {"[",  "{a: ", "- ", "? ", "a: ", "&a ",  "!x ",
                                  "{",  "[a, ", "* ", "\"", "'",   "|\n ", "%",
                                  "{{", "[[",   "\n", ",",  ":",   "#"};
  for (const auto& opening : openings) {
    for (const size_t count : {10, 199, 201, 1000, 20000, 300000}) {
      std::string text;
      for (size_t i = 0; i < count; ++i) text += opening;
      CAPTURE(opening);
      CAPTURE(count);
      watch.run(number++, [&] { REQUIRE_NOTHROW(survives(text)); });
    }
  }
}

TEST_CASE("overrides with random paths and values are set or refused, and nothing else") {
  const uint64_t seed = fuzz_seed();
  CAPTURE(seed);
  RandomValues random(seed);
  for (uint64_t i = 0; i < fuzz_count(20000) / 4; ++i) {
    CAPTURE(i);
    Value root = random.value(3);
    if (!root.is_map()) root = Value(Value::Map{{"a", root}});
    std::vector<Override> overrides;
    for (size_t j = random.below(4); j > 0; --j) {
      std::string path = random.below(2) == 0 ? "a" : random.key();
      for (size_t k = random.below(4); k > 0; --k) {
        path +=
            "/" + (random.below(2) == 0 ? std::string(1, "+0a1"[random.below(4)]) : random.key());
      }
      overrides.push_back({path, random.value(2)});
    }
    try {
      apply_overrides(root, overrides);
      root = escape_references(root);
      resolve_references(root);
    } catch (const UsageError&) {
      continue;
    }
    REQUIRE(parse_yaml(to_yaml(root), {"again.yaml", 0}) == root);
  }
}

}  // namespace fuzz_test
}  // namespace stepop
