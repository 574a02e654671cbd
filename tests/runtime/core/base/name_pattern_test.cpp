#include "runtime/core/base/name_pattern.h"

#include <doctest/doctest.h>

#include <random>
#include <regex>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
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
  CHECK(message("a(b") == "missing closing parenthesis, at character 4");
  CHECK(message("a)b") == "unmatched closing parenthesis, at character 2");
  CHECK(message("*a") == "quantifier does not follow a repeatable item, at character 1");
  CHECK(message("^*") == "quantifier does not follow a repeatable item, at character 2");
  CHECK(message("a[b-a]") == "range out of order in character class, at character 5");
  CHECK(message("[a") == "missing terminating ] for character class, at character 3");
  CHECK(message("a{2,1}") == "numbers out of order in {} quantifier, at character 6");
  CHECK(message("a\\") == "\\ at end of pattern, at character 3");
  CHECK(message("(*UTF)a") == "using UTF is disabled by the application, at character 7");
}

TEST_CASE("a name is bytes, and its end is no newline before it") {
  CHECK(NamePattern("^\\\xc3\\\xa9$").is_in("\xc3\xa9"));
  CHECK(NamePattern("^..$").is_in("\xc3\xa9"));
  CHECK_FALSE(NamePattern("\\w").is_in("\xc3\xa9"));
  CHECK(
      NamePattern("a").is_in("\xff"
                             "a"));
  CHECK_FALSE(NamePattern("bias$").is_in("bias\n"));
  CHECK(NamePattern("(.)\\.\\1$").is_in("block.3.3"));
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

TEST_CASE("a pattern with very many ways is decided, or ends with an error") {
  const std::string name = "a.name.of.a.parameter.that.is.as.long.as.some.are";
  CHECK_FALSE(NamePattern("(.*)*(.*)*(.*)*(.*)*(.*)*z").is_in(name));
  CHECK_FALSE(NamePattern("((a|.)*|b)*!").is_in(times(200, "a")));
  CHECK_FALSE(NamePattern(times(50, "a?") + times(50, "a")).is_in(times(49, "a")));
  CHECK_FALSE(NamePattern(times(20, "(?=.*a)") + "!").is_in(times(200, "a")));
  CHECK(message_of([&] { NamePattern("(a|aa)+[0-9]").is_in(times(30, "a") + "."); }) ==
        "the pattern (a|aa)+[0-9] and the name " + times(30, "a") +
            ".: the regular expression takes too many steps for a text of 31 bytes");
  CHECK_THROWS_AS(NamePattern("((a?)*)*[0-9]").is_in(times(100'000, "a")), Error);
  CHECK_THROWS_AS(NamePattern("(?R)?(a|b(?R))[0-9]").is_in(times(100'000, "b")), Error);
}

TEST_CASE("a pattern that is too large or too deep is refused") {
  CHECK(message(times(100'000, "(") + "a") == "it has 100001 characters; 10000 at most");
  CHECK(message(times(4000, "(") + "a" + times(4000, ")")) ==
        "parentheses are too deeply nested, at character 252");
  CHECK(message("(((a{1000}){1000}){1000}){1000}") ==
        "regular expression is too large, at character 32");
  CHECK(message("(((((){1000}){1000}){1000}){1000}){1000}") ==
        "regular expression is too large, at character 41");
  CHECK(message("a{70000}") == "number too big in {} quantifier, at character 8");
}

}  // namespace name_pattern_test
}  // namespace stepop
