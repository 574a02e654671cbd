#include "runtime/core/value/yaml_reader.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "runtime/core/value/yaml_text.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace yaml_reader_test {

Value parse(const std::string& text) { return parse_yaml(text, {"test.yaml", 0}); }
std::string flow(const std::string& text) { return flow_yaml(parse(text)); }
std::string parse_error(const std::string& text) {
  return message_of([&] { parse(text); });
}

TEST_CASE("plain scalars follow the core schema of YAML 1.2") {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<const char*, Value>> table = {
      // The table of chapter 10.3.2 of the YAML 1.2.2 specification, and what 1.1 took otherwise.
      {"null", {}},
      {"Null", {}},
      {"NULL", {}},
      {"~", {}},
      {"", {}},
      {"true", true},
      {"True", true},
      {"TRUE", true},
      {"false", false},
      {"False", false},
      {"FALSE", false},
      {"yes", "yes"},
      {"no", "no"},
      {"on", "on"},
      {"off", "off"},
      {"y", "y"},
      {"N", "N"},
      {"tRUE", "tRUE"},
      {"nULL", "nULL"},
      {"0", 0},
      {"-0", 0},
      {"10", 10},
      {"010", 10},
      {"0010", 10},
      {"+12", 12},
      {"-12", -12},
      {"0x10", 16},
      {"0xfF", 255},
      {"0o17", 15},
      {"0x", "0x"},
      {"0o", "0o"},
      {"0o8", "0o8"},
      {"-0x10", "-0x10"},
      {"0X10", "0X10"},
      {"0b11", "0b11"},
      {"1_000", "1_000"},
      {"1e-3", 1e-3},
      {"1E3", 1e3},
      {"1e+3", 1e3},
      {".5", 0.5},
      {"-.5", -0.5},
      {"5.", 5.0},
      {"1.", 1.0},
      {"0.", 0.0},
      {"+1.5", 1.5},
      {"1.e3", 1e3},
      {"12e03", 12e3},
      {"-2E+05", -2e5},
      {".", "."},
      {"e3", "e3"},
      {"1e", "1e"},
      {"1e+", "1e+"},
      {".e3", ".e3"},
      {"1.2.3", "1.2.3"},
      {"--1", "--1"},
      {"+-1", "+-1"},
      {"-", "-"},
      {"+", "+"},
      {"1 2", "1 2"},
      {".inf", infinity},
      {".Inf", infinity},
      {".INF", infinity},
      {"-.inf", -infinity},
      {"+.inf", infinity},
      {".iNF", ".iNF"},
      {"inf", "inf"},
      {".nan", std::nan("")},
      {".NaN", std::nan("")},
      {".NAN", std::nan("")},
      {"nan", "nan"},
      {"-.nan", "-.nan"},
      {"12:30:45", "12:30:45"},
      {"2026-11-21", "2026-11-21"},
      {"=", "="},
      {"<<", "<<"},
      {"9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<int64_t>::min()},
      // A number beyond 64 bits stays what it was written as.
      {"9223372036854775808", "9223372036854775808"},
      {"0xffffffffffffffff", "0xffffffffffffffff"},
  };
  for (const auto& row : table) {
    CAPTURE(row.first);
    CHECK(plain_scalar(row.first) == row.second);
  }
  CHECK(std::signbit(plain_scalar("-0.0").as_float()));
}

TEST_CASE("a quoted scalar stays text") {
  CHECK(flow("['1e-3', \"10\", 'true', \"\", 'null', '~']") ==
        R"(["1e-3", "10", "true", "", "null", "~"])");
  CHECK(parse("a: 'it''s'").find("a")->as_text() == "it's");
  CHECK(parse(R"(a: "tab\t, nul\0, \x41, \u00e4, \U0001F600, \/, \e")").find("a")->as_text() ==
        std::string("tab\t, nul\0, A, \xc3\xa4, \xf0\x9f\x98\x80, /, \x1b", 29));
}

TEST_CASE("a quoted text of empty lines alone is their breaks but the first, as PyYAML has it") {
  const std::pair<const char*, const char*> table[] = {
      {"''", ""},        {"'   '", "   "},    {"'\n '", " "},
      {"'\n\n '", "\n"}, {"\"\n\n \"", "\n"}, {"\"  \n \n\n \"", "\n\n"},
  };
  for (const auto& [yaml, text] : table) {
    CAPTURE(yaml);
    CHECK(parse(std::string("a: ") + yaml).find("a")->as_text() == text);
    CHECK(parse(std::string("[ä, ") + yaml + "]").as_list().at(1).as_text() == text);
  }
}

TEST_CASE("block and folded text keep their lines") {
  CHECK(parse("a: |\n  one\n  two\n").find("a")->as_text() == "one\ntwo\n");
  CHECK(parse("a: |-\n  12\n").find("a")->as_text() == "12");
  CHECK(parse("a: |+\n  one\n\n").find("a")->as_text() == "one\n\n");
  CHECK(parse("a: |\n  one").find("a")->as_text() == "one");
  CHECK(parse("a: |2\n   one\n").find("a")->as_text() == " one\n");
  CHECK(parse("a: >\n  one\n  two\n\n  three\n").find("a")->as_text() == "one two\nthree\n");
}

TEST_CASE("tags give a scalar its type, and a wrong one is an error") {
  CHECK(flow("[!!str 12, !!float 3, !!int 3, !!bool true, !!null ~, ! 12, !!str ]") ==
        R"(["12", 3.0, 3, true, null, "12", ""])");
  CHECK(flow("a: !!map {b: 1}\nc: !!seq [1]") == "{a: {b: 1}, c: [1]}");
  CHECK(parse_error("\na: !!int abc") == "test.yaml:2: \"abc\" is not of the type !!int");
  CHECK(parse_error("a: !!int 1.5") == "test.yaml:1: \"1.5\" is not of the type !!int");
  CHECK(parse_error("a: !!timestamp 2026-11-21") ==
        "test.yaml:1: unknown tag \"tag:yaml.org,2002:timestamp\"; known are !replace and !remove");
  CHECK(parse_error("a: !ref b") ==
        "test.yaml:1: unknown tag \"!ref\"; known are !replace and !remove");
  CHECK(parse_error("a: !!set {b}") ==
        "test.yaml:1: unknown tag \"tag:yaml.org,2002:set\"; known are !replace and !remove");
  CHECK(parse_error("a: [!remove b]") ==
        "test.yaml:1: !remove drops a key of a map; a list is given whole");
}

TEST_CASE("a value's origin is the line of its key") {
  const Value root =
      parse("a: 1\n\nb:\n  c:\n    - x\n    - {d: 2}\n  e: [1,\n    2]\nf: >\n  t\n");
  CHECK(root.find("a")->origin().text() == "test.yaml:1");
  CHECK(root.find("b")->origin().text() == "test.yaml:3");
  CHECK(root.find("b/c")->origin().text() == "test.yaml:4");
  CHECK(root.find("b/c/0")->origin().text() == "test.yaml:5");
  CHECK(root.find("b/c/1/d")->origin().text() == "test.yaml:6");
  CHECK(root.find("b/e/1")->origin().text() == "test.yaml:8");
  CHECK(root.find("f")->origin().text() == "test.yaml:9");
  // The lines of Windows, and a byte order mark.
  CHECK(parse("\xef\xbb\xbf"
              "a: 1\r\nb: {a}\r\n")
            .find("b")
            ->origin()
            .text() == "test.yaml:2");
  CHECK(parse_yaml("a: 1", {Origin::kCommandLine, 0}, true).find("a")->origin().text() ==
        "command line");
}

TEST_CASE("anchors and aliases copy, and << merges what the map does not say itself") {
  CHECK(flow("a: &x {b: 1}\nc: *x\n") == "{a: {b: 1}, c: {b: 1}}");
  CHECK(flow("a: &x 5\nb: [*x, *x]") == "{a: 5, b: [5, 5]}");
  CHECK(flow("&k key: 1\nb: *k") == "{key: 1, b: key}");
  CHECK(flow("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}") == "{a: {b: 1, c: 2}, d: {b: 1, c: 3}}");
  CHECK(flow("- &a {x: 1}\n- &b {x: 2, y: 2}\n- {<<: [*a, *b]}\n- {<<: {z: 3}}") ==
        "[{x: 1}, {x: 2, y: 2}, {x: 1, y: 2}, {z: 3}]");
  CHECK(flow("a: {'<<': 1}") == R"({a: {"<<": 1}})");
  CHECK(parse("a: &x\n  b: 1\nc:\n  <<: *x\n").find("c/b")->origin().text() == "test.yaml:2");
  CHECK(parse_error("a: {<<: 3}") == "test.yaml:1: << takes a map or a list of maps");
  CHECK(parse_error("a: &x {}\nb: {<<: *x, <<: *x}") ==
        "test.yaml:2: duplicate key \"<<\"; it takes a list: <<: [*a, *b]");
  CHECK(parse_error("a: &x [*x]") == "test.yaml:1: an alias inside of its own anchor");
}

TEST_CASE("aliases cannot multiply without an end") {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string name = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + name;
    for (int j = 1; j < 10; ++j) laughs += ", " + name;
    laughs += "]\n";
  }
  CHECK(parse_error(laughs) == "test.yaml:6: aliases that expand to more than a million values");
}

TEST_CASE("a key is text, kept as it is written") {
  CHECK(flow("010: a\n1e3: b\ntrue: c\n0x10: d\n'0': e") ==
        R"({"010": a, "1e3": b, "true": c, "0x10": d, "0": e})");
  CHECK(flow("~: a") == R"({"null": a})");
  CHECK(parse_error("[a]: 1") == "test.yaml:1: a key must be text, found a list");
  CHECK(parse_error("a: 1\n{b: 1}: 1") == "test.yaml:2: a key must be text, found a map");
  CHECK(parse_error("a: &x [1]\n*x : 1") == "test.yaml:2: a key must be text, found [1]");
  CHECK(parse_error("'': 1") == "test.yaml:1: an empty key");
  CHECK(parse_error(std::string(251, 'k') + ": 1") ==
        "test.yaml:1: a key of 251 bytes; 250 at most");
  CHECK(
      parse_error("a/b: 1") ==
      "test.yaml:1: the key \"a/b\" has a slash, which separates the keys of a path; write nested "
      "maps instead");
}

TEST_CASE("a duplicate key is an error that names both places") {
  CHECK(parse_error("a: 1\nb: 2\na: 3\n") ==
        "test.yaml:3: duplicate key \"a\", first given at test.yaml:1");
  CHECK(parse_error("m:\n  x:\n    y: 1\n  z: 1\n  x: 2\n") ==
        "test.yaml:5: duplicate key \"x\", first given at test.yaml:2");
  CHECK(parse_error("{a: 1, 'a': 2}") ==
        "test.yaml:1: duplicate key \"a\", first given at test.yaml:1");
}

TEST_CASE("YAML that does not parse is an error with its line") {
  const std::string bad = ": not valid YAML: ";
  CHECK(parse_error("a: 'x\nb: 1\n") == "test.yaml:3" + bad + "a quote is opened and never closed");
  CHECK(parse_error("a: [1, 2\n") ==
        "test.yaml:2" + bad + "a [ is never closed, or a comma is missing");
  CHECK(parse_error("a: {b: 2\nc: 3\n") ==
        "test.yaml:2" + bad + "a { is never closed, or a comma is missing, at \"c: 3\"");
  CHECK(parse_error("a: ]\n") == "test.yaml:1" + bad + "a ] or } closes nothing, at \"a: ]\"");
  CHECK(parse_error("a: b: c\n") ==
        "test.yaml:1" + bad +
            "a key is not allowed here: check the indentation, and quote "
            "text with \": \", at \"a: b: c\"");
  CHECK(parse_error("x: 1\nbatch_size:64\nnum_epochs: 20\n") ==
        "test.yaml:3" + bad +
            "\"batch_size:64\" in the line before is one word: write \"batch_size: 64\", with a "
            "space after the colon");
  CHECK(parse_error("a:\n  b: 1\n c: 1\n") ==
        "test.yaml:3" + bad +
            "this does not continue the map above: check the indentation, at \"c: 1\"");
  CHECK(parse_error("a: @x\n") ==
        "test.yaml:1" + bad + "text that begins with this character needs quotes, at \"a: @x\"");
  CHECK(parse_error("a: \"\\q\"\n") ==
        "test.yaml:1" + bad + R"(unknown escape character: q, at "a: \"\\q\"")");
  CHECK(parse_error("a:\n\tb: 1\n") ==
        "test.yaml:2" + bad + "a tab cannot indent, use spaces, at \"b: 1\"");
  CHECK(parse_error(R"(a: "\N")") ==
        "test.yaml:1: \\N and \\_ are not supported; write \\x85 and \\xa0");
  std::string anchor = parse_error("a: *b\n");
  if (const size_t name = anchor.find(": b, at"); name != std::string::npos) {
    anchor.erase(name, 3);  // yaml-cpp 0.8
  }
  CHECK(anchor == "test.yaml:1" + bad + "the referenced anchor is not defined, at \"a: *b\"");
  CHECK(parse_error("a: 1\n---\nb: 2\n") ==
        "test.yaml:2: a second YAML document begins; a config has one");
  CHECK(parse_error("- 1\nb: 1\n") ==
        "test.yaml:2: a second YAML document begins; a config has one");
  CHECK(parse_error("model: {lr:1}") ==
        "test.yaml:1: \"lr:1\" is one word: write \"lr: 1\", with a space after the colon");
  CHECK(parse_error("a: 1\nb: \xff\n") ==
        "test.yaml:2: not valid YAML: the byte 0xff is not UTF-8 text");
  CHECK(parse_error("a: 1\nb: \x04\nc: 1\n") ==
        "test.yaml:2: not valid YAML: the byte 0x04 is a control character");
  CHECK(parse_error(std::string("a: \0", 4)) ==
        "test.yaml:1: not valid YAML: the byte 0x00 is a control character");
}

TEST_CASE("nesting has a limit, far above any config's and far below the stack's") {
  const std::string deep(199, '[');
  CHECK(parse_error(deep + std::string(199, ']')) == "no error");
  CHECK(parse_error(std::string(100000, '[')) != "no error");
  std::string block;
  for (int i = 0; i < 300; ++i) block += std::string(i, ' ') + "a:\n";
  CHECK(parse_error(block).ends_with("nested deeper than 200"));
}

TEST_CASE("a config file is a map, and an empty one has no keys") {
  const ScratchFolder folder;
  CHECK(read_yaml_file(folder.write("empty.yaml", "")) == Value(Value::Map{}));
  CHECK(read_yaml_file(folder.write("comment.yaml", "# nothing\n")) == Value(Value::Map{}));
  CHECK(flow_yaml(read_yaml_file(folder.write("a.yaml", "a: 1"))) == "{a: 1}");

  const auto read = [](const std::string& path) {
    return message_of([&] { read_yaml_file(path); });
  };
  const std::string list = folder.write("list.yaml", "- 1\n");
  CHECK(read(list) == list + ": expected a map of keys and values at the top, found [1]");
  CHECK(read(folder.path("none.yaml")) ==
        "cannot read " + folder.path("none.yaml") + ": No such file or directory");
  CHECK(read(folder.path()) == folder.path() + ": a folder, where a config file is expected");
  const std::string broken = folder.write("broken.yaml", "a: 1\nb: [\n");
  CHECK(read(broken).starts_with(broken + ":"));
}

}  // namespace yaml_reader_test
}  // namespace stepop
