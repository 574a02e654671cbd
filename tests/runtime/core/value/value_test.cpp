#include "runtime/core/value/value.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace stepop {
namespace value_test {

TEST_CASE("values are equal in type and content, whatever their origin") {
  CHECK(Value(1) == Value(int64_t{1}));
  CHECK_FALSE(Value(1) == Value(1.0));
  CHECK_FALSE(Value("1") == Value(1));
  CHECK_FALSE(Value() == Value(""));
  CHECK(Value(Value::List{1, "a"}).set_origin({"a.yaml", 3}) == Value(Value::List{1, "a"}));
  CHECK_FALSE(Value(Value::List{1, 2}) == Value(Value::List{2, 1}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(Value(nan) == Value(nan));
  CHECK_FALSE(Value(nan) == Value(1.0));
}

TEST_CASE("a map keeps the order of its keys, also when one is set again") {
  Value::Map map{{"b", 1}, {"a", 2}};
  map.set("c", 3);
  map.set("b", 4);
  CHECK(map.key_list() == "b, a, c");
  CHECK(map.at("b").as_int() == 4);
  map.erase("a");
  CHECK(map.key_list() == "b, c");
}

TEST_CASE("a path finds through maps and lists") {
  Value root = Value::Map{{"a", Value::Map{{"b", Value::List{1, Value::Map{{"c", "deep"}}}}}}};
  CHECK(root.find("a/b/1/c")->as_text() == "deep");
  CHECK(root.find("/a//b/0/")->as_int() == 1);
  CHECK(root.find("") == &root);
  for (const char* nowhere : {"a/x", "a/b/2", "a/b/-1", "a/b/x", "a/b/0/c", "a/b/1/c/d", "x"}) {
    CAPTURE(nowhere);
    CHECK(root.find(nowhere) == nullptr);
  }
}

TEST_CASE("an index of a list is a whole number and nothing else") {
  CHECK(list_index("0") == 0);
  CHECK(list_index("12") == 12);
  for (const char* text : {"", "-1", "+1", "1.0", "1a", " 1", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK(list_index(text) == -1);
  }
}

TEST_CASE("paths are split at slashes and joined with one") {
  CHECK(split_path("a/b") == std::vector<std::string>{"a", "b"});
  CHECK(split_path("//a///b/") == std::vector<std::string>{"a", "b"});
  CHECK(split_path("").empty());
  CHECK(join_path("a", "b/c") == "a/b/c");
  CHECK(join_path("", "b") == "b");
  CHECK(join_path("a", "") == "a");
}

TEST_CASE("an origin is a line of a file, the command line, or the code") {
  CHECK(Origin{"a.yaml", 12}.text() == "a.yaml:12");
  CHECK(Origin{Origin::kCommandLine, 0}.text() == "command line");
  CHECK(Origin{}.text() == "default");
}

TEST_CASE("a value describes itself in one short line") {
  CHECK(Value().describe() == "nothing (null)");
  CHECK(Value(true).describe() == "true");
  CHECK(Value(12).describe() == "12");
  CHECK(Value(0.5).describe() == "0.5");
  CHECK(Value("fast").describe() == "\"fast\"");
  CHECK(Value("two\nlines\x1b").describe() == R"("two\nlines\x1b")");
  CHECK(Value(Value::List{1, 2, 3}).describe() == "[1, 2, 3]");
  CHECK(Value(Value::List{"a", Value::Map{{"b", Value(Value::List{})}}}).describe() ==
        "[a, {b: []}]");
  CHECK(Value(Value::List{std::string(80, 'x')}).describe() == "a list of 1");
  CHECK(Value(Value::List(1000, 1)).describe() == "a list of 1000");
  CHECK(Value(Value::Map{}).describe() == "a map");
  CHECK(Value(std::string(1000, 'x')).describe() == "\"" + std::string(80, 'x') + "...\"");
  // A cut never halves a character.
  const std::string umlauts = "x\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4";
  std::string text;
  for (int i = 0; i < 5; ++i) text += umlauts.substr(1);
  CHECK(Value("x" + text).describe() == "\"x" + text.substr(0, 78) + "...\"");
}

TEST_CASE("values are counted with everything in them") {
  CHECK(count_values(Value()) == 1);
  CHECK(count_values(Value(Value::Map{{"a", Value::List{1, 2}}, {"b", 3}})) == 5);
}

}  // namespace value_test
}  // namespace stepop
