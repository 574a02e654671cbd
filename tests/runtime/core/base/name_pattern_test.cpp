#include "runtime/core/base/name_pattern.h"

#include <doctest/doctest.h>

#include <random>
#include <regex>
#include <string>
#include <vector>

#include "tests/message_of.h"

namespace stepop {
namespace name_pattern_test {

std::string message(const std::string& pattern) {
  return message_of([&] { NamePattern{pattern}; });
}

std::string times(size_t count, const std::string& text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST_CASE("a pattern is looked for anywhere in a name") {
  CHECK(NamePattern("bias").is_in("model.0.bias"));
  CHECK_FALSE(NamePattern("bias$").is_in("model.bias.0"));
  CHECK(NamePattern("^model\\.[0-2]\\.(weight|bias)$").is_in("model.2.weight"));
  CHECK_FALSE(NamePattern("^model\\.[0-2]\\.(weight|bias)$").is_in("model.3.weight"));
  CHECK(NamePattern("^(?!.*bias).*norm").is_in("layer.norm.weight"));
  CHECK_FALSE(NamePattern("^(?!.*bias).*norm").is_in("layer.norm.bias"));
  CHECK(NamePattern("\\bconv\\d{1,2}\\b").is_in("net.conv12.weight"));
  CHECK_FALSE(NamePattern("\\bconv\\d{1,2}\\b").is_in("net.conv123.weight"));
  CHECK(NamePattern("").is_in(""));
  CHECK(NamePattern("a|").is_in("b"));
  CHECK(NamePattern("[[:alpha:]_]+\\x2e").is_in("a_b."));
  CHECK(NamePattern("x{3,}?").is_in("xxx"));
  CHECK_FALSE(NamePattern("x{3,}").is_in("xx.x"));
}

TEST_CASE("what is no pattern is reported with its place") {
  CHECK(message("a(b") == "\")\" is missing, at character 4");
  CHECK(message("a)b") == "\")\" ends no group, at character 2");
  CHECK(message("*a") == "nothing that \"*\" could repeat, at character 1");
  CHECK(message("^*") == "nothing that \"*\" could repeat, at character 2");
  CHECK(message("a[b-a]") == "a range that ends before it begins, at character 6");
  CHECK(message("[a") == "\"]\" is missing, at character 3");
  CHECK(message("a{2,1}") == "a repetition from more to fewer, at character 7");
  CHECK(message("a\\") == "a backslash at the end, at character 3");
  CHECK(message("(a)\\1") == "references to groups, as \\1, are not supported, at character 6");
  CHECK(message("(?<n>a)") == "of groups with \"?\" there are (?:, (?= and (?!, at character 2");
}

TEST_CASE("random patterns match what std::regex matches") {
  std::mt19937_64 random(7);
  const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
  const std::vector<std::string> parts = {
      "a",   "b",    ".",     "[ab]",         "[^a]",  "\\d",   "\\w", "a*",
      "b+",  "c?",   "(a|b)", "(ab)*",        "(a|)",  "^",     "$",   "\\b",
      "\\.", "a{2}", "(b.)?", "(?:a|c){1,2}", "(?=a)", "(?!b)", "|",   "1"};
  for (int i = 0; i < 3000; ++i) {
    std::string pattern;
    for (size_t count = 1 + below(5); count > 0; --count) pattern += parts[below(parts.size())];
    if (below(3) == 0) pattern = "(" + pattern + ")" + std::string(1, "*+?"[below(3)]);
    const std::regex expected(pattern);
    const NamePattern found(pattern);
    for (int j = 0; j < 10; ++j) {
      std::string name;
      for (size_t count = below(7); count > 0; --count) name += "abc1."[below(5)];
      CAPTURE(pattern);
      CAPTURE(name);
      REQUIRE(found.is_in(name) == std::regex_search(name, expected));
    }
  }
}

TEST_CASE("a pattern that std::regex would not come to an end with is decided") {
  const std::string name = "a.name.of.a.parameter.that.is.as.long.as.some.are";
  CHECK_FALSE(NamePattern("(.*)*(.*)*(.*)*(.*)*(.*)*z").is_in(name));
  CHECK_FALSE(NamePattern("((a|.)*|b)*!").is_in(times(200, "a")));
  CHECK_FALSE(NamePattern(times(50, "a?") + times(50, "a")).is_in(times(49, "a")));
  CHECK_FALSE(NamePattern(times(20, "(?=.*a)") + "!").is_in(times(200, "a")));
}

TEST_CASE("a pattern that is too large or too deep is refused") {
  CHECK(message(times(100'000, "(") + "a") == "it has 100001 characters; 10000 at most");
  CHECK(message(times(4000, "(") + "a" + times(4000, ")")) ==
        "groups lie more than 200 deep, at character 202");
  const std::string too_long = "it has more than 20000 steps with its repetitions written out";
  CHECK(message("(((a{1000}){1000}){1000}){1000}") == too_long);
  CHECK(message("(((((){1000}){1000}){1000}){1000}){1000}") == too_long);
  CHECK(message("a{1001}") == "more than 1000 repetitions, at character 7");
  CHECK(message(times(21, "(?=a)")) == "more than 20 of (?= and (?!, at character 104");
}

}  // namespace name_pattern_test
}  // namespace stepop
