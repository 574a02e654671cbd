#include "runtime/core/config/references.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <set>
#include <string>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/message_of.h"

namespace stepop {
namespace references_test {

Value parse(const std::string& text, const std::string& file = "test.yaml") {
  return parse_yaml(text, {file, 0});
}

std::string resolved(const std::string& yaml) {
  Value root = parse(yaml);
  resolve_references(root);
  return flow_yaml(root);
}

std::string reference_error(const std::string& yaml) {
  return message_of([&] { resolved(yaml); });
}

TEST_CASE("a reference takes the value at its path with its type") {
  CHECK(resolved("a: 1.5\nb: '{a}'\nc: ['{a}', {d: '{m/n}'}]\nm: {n: [1, x, null, true]}") ==
        "{a: 1.5, b: 1.5, c: [1.5, {d: [1, x, null, true]}], m: {n: [1, x, null, true]}}");
  CHECK(resolved("a: '1'\nb: '{a}'\nl: [5, 6]\nc: '{l/1}'") ==
        "{a: \"1\", b: \"1\", l: [5, 6], c: 6}");
}

TEST_CASE("arithmetic over references gives numbers, by Python's rules") {
  const auto computed = [](const std::string& text) {
    const std::string all = resolved("a: 7\nb: 2\nr: 0.5\nn: -7\nm: {c: '{a}'}\nx: '" + text + "'");
    return all.substr(all.find("x: ") + 3, all.size() - all.find("x: ") - 4);
  };
  CHECK(computed("{a} * 2") == "14");
  CHECK(computed("{a} + {b} * 3 - 1") == "12");
  CHECK(computed("({a} + {b}) * 3") == "27");
  CHECK(computed("{a} / 2") == "3.5");
  CHECK(computed("{a} // 2") == "3");
  CHECK(computed("{n} // 2") == "-4");
  CHECK(computed("{a} // -2") == "-4");
  CHECK(computed("{a} // {r}") == "14.0");
  CHECK(computed("4 / {b}") == "2.0");
  CHECK(computed("{a} * 1e-3") == "0.007");
  CHECK(computed("min({a}, {b}, 5)") == "2");
  CHECK(computed("max({a} - 10, {b} // 2, 0.5)") == "1");
  CHECK(computed("{m/c} * {m/c}") == "49");
}

TEST_CASE("texts that are no arithmetic stay texts") {
  const auto text = [](const std::string& yaml) {
    return resolved("a: 7\nb: 2\nt: x\nz: " + yaml);
  };
  CHECK(text("'{a}/{b}'") == "{a: 7, b: 2, t: x, z: \"7/2\"}");
  CHECK(text("'{a}-{b}'") == "{a: 7, b: 2, t: x, z: \"7-2\"}");
  CHECK(text("'{t} - {b}'") == "{a: 7, b: 2, t: x, z: \"x - 2\"}");
  CHECK(text("'{a} *{b}'") == "{a: 7, b: 2, t: x, z: \"7 *2\"}");
  CHECK(text("'{a} steps'") == "{a: 7, b: 2, t: x, z: \"7 steps\"}");
  CHECK(text("'2 * 3'") == "{a: 7, b: 2, t: x, z: \"2 * 3\"}");
  CHECK(text("'{{a}} * 2'") == "{a: 7, b: 2, t: x, z: \"{a} * 2\"}");
}

TEST_CASE("arithmetic without spaces, where a number is expected, says that spaces make it one") {
  const auto mistake = [](const std::string& text) {
    Value root = parse_yaml("epochs: 20\nsteps: \"" + text + "\"", {"test.yaml", 0});
    resolve_references(root);
    return message_of([&] { Config(root).get<int64_t>("steps"); });
  };
  const std::string hint =
      ": operators over references stand between spaces, as in {batch_size} * 2";
  for (const std::string text : {"20*2", "20 *2", "20* 2", "(20+1)*2", "-20/2", "20-2"}) {
    CAPTURE(text);
    const std::string expected =
        "test.yaml:2: steps: expected a whole number, found \"" + text + "\"";
    CHECK(mistake(text) == expected + hint);
    const std::string reference = "{epochs}" + text.substr(text.find("20") + 2);
    const std::string before = text.substr(0, text.find("20"));
    CHECK(mistake(before + reference) == expected + hint);
  }
  for (const std::string text : {"fast", "2 * 3", "-", "20x", "1.2.3", "--"}) {
    CAPTURE(text);
    CHECK(mistake(text).ends_with("found \"" + text + "\""));
  }
}

TEST_CASE("digits of more than 64 bits are a text, alone") {
  const std::string digits = "123456789012345678901234567890";
  CHECK(resolved("a: " + digits) == "{a: \"" + digits + "\"}");
  CHECK(reference_error("a: 1\nb: '{a} + " + digits + "'") ==
        "test.yaml:2: b: \"{a} + " + digits + "\" has a whole number of more than 64 bits, " +
            digits + ": " + digits + ".0 is a float");
}

TEST_CASE("arithmetic that cannot be is refused with its place") {
  CHECK(reference_error("a: 0\nb: '1 / {a}'") == "test.yaml:2: b: \"1 / {a}\" divides by 0");
  CHECK(reference_error("a: 9000000000000000000\nb: '{a} * 2'") ==
        "test.yaml:2: b: \"{a} * 2\" computes a whole number of more than 64 bits");
  CHECK(reference_error("num_epochs: 3\nb: '{num_epoch} * 2'") ==
        "test.yaml:2: b: the reference {num_epoch} leads nowhere: did you mean {num_epochs}?");
  CHECK(reference_error("a: '{b} * 2'\nb: '{a} * 2'").find("goes in a circle") !=
        std::string::npos);
}

TEST_CASE("an unquoted {path} is the reference it is meant to be") {
  CHECK(resolved("a: 1.5\nb: {a}\nc: [{a}, '{b}', { a }]\nd: {a: null}\ne: {a: }\nf: {? a : }") ==
        "{a: 1.5, b: 1.5, c: [1.5, 1.5, 1.5], d: {a: null}, e: {a: null}, f: {a: null}}");
  CHECK(resolved("a: {b: 2}\nc: {a/b}") == "{a: {b: 2}, c: 2}");
  CHECK(resolved("d: {a, b}") == "{d: {a: null, b: null}}");
}

TEST_CASE("references resolve in any order, through each other") {
  CHECK(resolved("a: '{b}'\nb: '{c}'\nc: 7") == "{a: 7, b: 7, c: 7}");
  CHECK(resolved("a: '{m}'\nm: {x: '{n}'}\nn: 3") == "{a: {x: 3}, m: {x: 3}, n: 3}");
  // A path that leads through a reference, which stands after it.
  CHECK(resolved("lr: '{model/lr}'\nmodel: '{base}'\nbase: {lr: 0.5}") ==
        "{lr: 0.5, model: {lr: 0.5}, base: {lr: 0.5}}");
  // Two values of one map may name each other's neighbours.
  CHECK(resolved("m: {a: '{m/b}', b: 2}") == "{m: {a: 2, b: 2}}");
}

TEST_CASE("text with braces in it is text, and two braces are one") {
  CHECK(resolved("a: 'run_{x}'\nb: '{not a path}'\nc: '{}'\nd: '}{'") ==
        R"({a: "run_{x}", b: "{not a path}", c: "{}", d: "}{"})");
  CHECK(resolved("a: '{{b}}'\nb: 'x{{y'") == R"({a: "{b}", b: "x{y"})");
}

TEST_CASE("a reference to nowhere names the nearest path") {
  CHECK(reference_error("optimizer: {lr: 1}\na:\n  b: '{optimizer/lrr}'") ==
        "test.yaml:3: a/b: the reference {optimizer/lrr} leads nowhere: did you mean "
        "{optimizer/lr}?");
  CHECK(reference_error("a: {nothing}") == "test.yaml:1: a: the reference {nothing} leads nowhere");
  CHECK(reference_error("a: [1]\nb: '{a/1}'")
            .starts_with("test.yaml:2: b: the reference {a/1} leads nowhere"));
}

TEST_CASE("a reference that leads nowhere is not told to name itself") {
  CHECK(reference_error("extra: {first: '{extra/frist}', other: 1}") ==
        "test.yaml:1: extra/first: the reference {extra/frist} leads nowhere");
  CHECK(reference_error("extra: {first: {deep: '{extra/frist}'}}") ==
        "test.yaml:1: extra/first/deep: the reference {extra/frist} leads nowhere");
}

TEST_CASE("a reference inside a longer text becomes a part of it") {
  CHECK(
      resolved("d: {root: /data, n: 3, x: 0.5, b: true}\nt: '{d/root}/train_{d/n}_{d/x}_{d/b}'") ==
      "{d: {root: /data, n: 3, x: 0.5, b: true}, t: /data/train_3_0.5_true}");
  // In any order, through each other, and through a reference on the way.
  CHECK(resolved("a: '{b}/c'\nb: '{r}/b'\nr: /r") == "{a: /r/b/c, b: /r/b, r: /r}");
  CHECK(resolved("a: 'x{m/k}'\nm: '{n}'\nn: {k: 1}") == "{a: x1, m: {k: 1}, n: {k: 1}}");
  // What is near no key, and braces that are written double, also in what is put in.
  CHECK(resolved("a: {b: 1}\nc: '{x}-{a b}.png'\nd: '{{a/b}}/c'") ==
        "{a: {b: 1}, c: \"{x}-{a b}.png\", d: \"{a/b}/c\"}");
  CHECK(resolved("a: '{{x}}'\nb: '{a}-{{y}}'") == R"({a: "{x}", b: "{x}-{y}"})");
}

TEST_CASE("a reference inside a longer text that cannot become a part of it says why") {
  CHECK(reference_error("data: {root: /d}\na: '{data/rot}/x'") ==
        "test.yaml:2: a: the reference {data/rot} leads nowhere: did you mean {data/root}?");
  CHECK(reference_error("data_root: /d\na: '{data_rot}/x'") ==
        "test.yaml:2: a: the reference {data_rot} leads nowhere: did you mean {data_root}?");
  CHECK(reference_error("data: {root: /d}\na: 'x{data}'") ==
        "test.yaml:2: a: the reference {data} is inside a longer text and leads to a map: only a "
        "text, a number or a truth value can be inserted there; write {{data}} for braces");
  CHECK(reference_error("a: 'x{b}'\nb: 'x{a}'") ==
        "test.yaml:2: b: the reference {a} goes in a circle: a -> b -> a");
  std::string doubling = "a: '" + std::string(100, 'x') + "'\n";
  for (char c = 'b'; c < 't'; ++c) {
    const auto before = static_cast<char>(c - 1);
    doubling += fmt::format("{}: '{{{}}}{{{}}}'\n", c, before, before);
  }
  CHECK(reference_error(doubling).ends_with("expand to a text of more than 1000000 bytes"));
}

TEST_CASE("a long text that is referred to again and again is refused before it fills the memory") {
  std::string yaml = "a: '" + std::string(900'000, 'x') + "'\nb:\n";
  for (int i = 0; i < 2000; ++i) yaml += i % 2 == 0 ? "- '{a}'\n" : "- '/{a}'\n";
  CHECK(reference_error(yaml).ends_with("references that expand to more than a million values"));
}

TEST_CASE("a variable of the environment has the type that it is written in") {
  ::setenv("STEPOP_TEST_NUMBER", "12", 1);
  ::setenv("STEPOP_TEST_BRACES", "a{b}", 1);
  ::unsetenv("STEPOP_TEST_NONE");
  CHECK(resolved("n: '{env:STEPOP_TEST_NUMBER}'\nt: 'x{env:STEPOP_TEST_NUMBER}/y'") ==
        "{n: 12, t: x12/y}");
  CHECK(resolved("b: 1\nt: '{env:STEPOP_TEST_BRACES}'\nu: '/{env:STEPOP_TEST_BRACES}'") ==
        R"({b: 1, t: "a{b}", u: "/a{b}"})");
  CHECK(resolved("a: '{env:STEPOP_TEST_NONE:/tmp/x}'\nb: '{env:STEPOP_TEST_NONE:}'\n"
                 "c: '{a}/{env:STEPOP_TEST_NONE:0.5}'") ==
        R"({a: /tmp/x, b: null, c: /tmp/x/0.5})");
  Value root = parse("a:\n  b: '{env:STEPOP_TEST_NUMBER}'");
  resolve_references(root);
  CHECK(root.find("a/b")->origin().text() == "test.yaml:2");
  CHECK(reference_error("a:\n  b: '{env:STEPOP_TEST_NONE}'") ==
        "test.yaml:2: a/b: the environment has no variable STEPOP_TEST_NONE; set it, or give a "
        "default: {env:STEPOP_TEST_NONE:default}");
}

TEST_CASE("a saved text with such braces is read again as it is") {
  Value root = parse("a: {b: 1}\nc: '{{a/b}}/c'");
  resolve_references(root);
  Value again = escape_references(root);
  resolve_references(again);
  CHECK(again == root);
}

TEST_CASE("a reference in a circle shows the circle") {
  CHECK(reference_error("a: '{a}'") ==
        "test.yaml:1: a: the reference {a} goes in a circle: a -> a");
  CHECK(reference_error("a: '{b}'\nb: '{c}'\nc: '{a}'") ==
        "test.yaml:3: c: the reference {a} goes in a circle: a -> b -> c -> a");
  CHECK(reference_error("m: {a: '{m}'}") ==
        "test.yaml:1: m/a: the reference {m} goes in a circle: m/a -> m");
  CHECK(reference_error("a: '{a/b}'") ==
        "test.yaml:1: a: the reference {a/b} goes in a circle: a -> a -> a/b");
  CHECK(reference_error("m: {x: '{n}'}\nn: {y: '{m}'}") ==
        "test.yaml:2: n/y: the reference {m} goes in a circle: m/x -> n/y -> m");
}

TEST_CASE("references cannot multiply without an end") {
  std::string laughs = "a0: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string name = "'{a" + std::to_string(i - 1) + "}'";
    laughs += "a" + std::to_string(i) + ": [" + name;
    for (int j = 1; j < 10; ++j) laughs += ", " + name;
    laughs += "]\n";
  }
  CHECK(reference_error(laughs).ends_with("references that expand to more than a million values"));

  std::string deep = "a0: []\n";
  for (int i = 1; i < 300; ++i) {
    deep += "a" + std::to_string(i) + ": [{a" + std::to_string(i - 1) + "}]\n";
  }
  CHECK(reference_error(deep).ends_with("nested deeper than 200"));
}

TEST_CASE("references that lead to one another exhaust no stack") {
  std::string chain;
  for (int i = 0; i < 20'000; ++i) {
    chain += "k" + std::to_string(i) + ": '{k" + std::to_string(i + 1) + "}'\n";
  }
  CHECK(reference_error(chain + "k20000: 1\n") ==
        "test.yaml:201: k200: the reference {k201} is one of more than 200 that lead to one "
        "another: write the value out");

  // Each lies deep in what the one before leads to.
  std::string deep;
  for (int i = 0; i < 100; ++i) {
    deep += "k" + std::to_string(i) + ": " + std::string(150, '[') + "'{k" + std::to_string(i + 1) +
            "}'" + std::string(150, ']') + "\n";
  }
  CHECK(reference_error(deep + "k100: 1\n").find("more than 1000 deep into one another") !=
        std::string::npos);

  // Those that are resolved already lead no further.
  std::string backwards = "k0: 1\n";
  for (int i = 1; i < 20'000; ++i) {
    backwards += "k" + std::to_string(i) + ": '{k" + std::to_string(i - 1) + "}'\n";
  }
  CHECK(reference_error(backwards) == "no error");
}

TEST_CASE("a resolved config is escaped so that resolving it again changes nothing") {
  for (const char* text :
       {"{a}", "{{a}}", "{{{a}}}", "x{a}", "{env:HOME}", "{a}{b}", "x{{y", "{a}}", "}}", "{{",
        "{not a path}", "run_{a}", "{", "{}", "{{}}", "}}{{"}) {
    CAPTURE(text);
    const Value root(Value::Map{{"a", 1}, {"b", Value::List{text, Value::Map{{"c", text}}}}});
    Value again = parse(to_yaml(escape_references(root)));
    resolve_references(again);
    CHECK(again == root);
  }
}

TEST_CASE("the variables of the environment that a config asks for are known, set or not") {
  ::setenv("STEPOP_TEST_SET", "x", 1);
  Value root = parse("a: '{env:STEPOP_TEST_SET}'\nb: 'in {env:STEPOP_TEST_NONE:c} it'\nd: '{a}'\n");
  std::set<std::string> variables;
  resolve_references(root, &variables);
  ::unsetenv("STEPOP_TEST_SET");
  CHECK(variables == std::set<std::string>{"STEPOP_TEST_NONE", "STEPOP_TEST_SET"});
}

}  // namespace references_test
}  // namespace stepop
