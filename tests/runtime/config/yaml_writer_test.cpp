#include "runtime/config/yaml_writer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "runtime/config/yaml_reader.h"
#include "tests/runtime/config/random_values.h"

namespace stepop {
namespace yaml_writer_test {

Value parse(const std::string& text) { return parse_yaml(text, {"test.yaml", 0}); }

TEST_CASE("floats keep a point, so that every reader takes them for floats") {
  const std::vector<std::pair<double, const char*>> table = {
      {1.0, "1.0"},
      {0.1, "0.1"},
      {1e-5, "1.0e-05"},
      {1.5e-7, "1.5e-07"},
      {1e22, "1.0e+22"},
      {-0.0, "-0.0"},
      {1e5, "100000.0"},
      {5e-324, "5.0e-324"},
      {0.1 + 0.2, "0.30000000000000004"},
      {std::numeric_limits<double>::infinity(), ".inf"},
      {-std::numeric_limits<double>::infinity(), "-.inf"},
      {std::nan(""), ".nan"},
  };
  for (const auto& [number, text] : table) {
    CHECK(flow_yaml(number) == text);
    CHECK(parse(text) == Value(number));
  }
  CHECK(std::signbit(parse(flow_yaml(-0.0)).as_float()));
}

TEST_CASE("text is quoted where a reader could take it for something else") {
  for (const char* plain : {"LeNet", "a", "_x", "train/log_op", "./data", "../a.png", "/a/b",
                            "v1.2", "a-b", "a+b", "n", "y"}) {
    CHECK(flow_yaml(plain) == plain);
  }
  for (const char* text :
       {"",    " ",   "1",   "1e-3",       "010",      "0x1",   "true", "null", "~",        "yes",
        "No",  "ON",  "off", "2026-11-21", "12:30:45", "1_000", "0b1",  "=",    "<<",       "-",
        "- a", "?",   ":",   "a: b",       "a #b",     "#",     "&a",   "*a",   "!a",       "|",
        ">",   "%",   "@",   "`",          "{",        "}",     "[",    "]",    ",",        "a,b",
        "...", "---", ".5",  ".inf",       "+1",       "{a}",   "a b",  "'",    "trailing "}) {
    CAPTURE(text);
    CHECK(flow_yaml(text) == "\"" + std::string(text) + "\"");
    CHECK(parse("[" + flow_yaml(text) + "]") == Value(Value::List{text}));
  }
  CHECK(flow_yaml("a\"b\\c\n\t\r\x01\x7f") == R"("a\"b\\c\n\t\r\x01\x7f")");
  // Next line, line separator, paragraph separator, byte order mark: breaks to a reader of
  // YAML 1.1.
  CHECK(flow_yaml("\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf") == R"("\x85\L\P\ufeff")");
  CHECK(flow_yaml("\xc3\xa4\xf0\x9f\x98\x80") == "\"\xc3\xa4\xf0\x9f\x98\x80\"");
}

TEST_CASE("maps stand in blocks, lists of plain values in one line") {
  const Value root = parse(
      "{model: {class: LeNet, hidden: [120, [84]]}, empty: {}, none: [], "
      "list: [{a: 1, b: {c: 2}}, [{d: 3}], 4], '1': x}");
  CHECK(to_yaml(root) ==
        "model:\n"
        "  class: LeNet\n"
        "  hidden: [120, [84]]\n"
        "empty: {}\n"
        "none: []\n"
        "list:\n"
        "  - a: 1\n"
        "    b:\n"
        "      c: 2\n"
        "  - - d: 3\n"
        "  - 4\n"
        "\"1\": x\n");
  CHECK(parse(to_yaml(root)) == root);
  CHECK(to_yaml(Value::Map{}) == "{}\n");
  CHECK(to_yaml(Value()) == "null\n");
}

TEST_CASE("what is written reads back as the same types and values") {
  RandomValues random(1);
  for (int i = 0; i < 3000; ++i) {
    const Value value = random.value(4);
    CAPTURE(i);
    CAPTURE(to_yaml(value));
    REQUIRE(parse(to_yaml(value)) == value);
    REQUIRE(parse(flow_yaml(value)) == value);
  }
}

}  // namespace yaml_writer_test
}  // namespace stepop
