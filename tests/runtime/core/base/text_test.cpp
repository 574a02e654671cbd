#include "runtime/core/base/text.h"

#include <doctest/doctest.h>

#include <string>
#include <typeinfo>
#include <vector>

#include "runtime/core/base/error.h"

namespace stepop {
namespace text_test {

using Names = std::vector<std::string>;

TEST_CASE("a list in a message ends after ten with the number of those left out") {
  CHECK(list_text({}) == "none");
  CHECK(list_text({"a"}) == "a");
  CHECK(list_text({"a", "b", "c"}) == "a, b, c");
  CHECK(list_text({"a", "b", "c"}, 2) == "a, b and 1 more");
  CHECK(list_text(Names(10, "x")) == "x, x, x, x, x, x, x, x, x, x");
  CHECK(list_text(Names(12, "x")) == "x, x, x, x, x, x, x, x, x, x and 2 more");
  CHECK(list_lines({}, "\n  ").empty());
  CHECK(list_lines({"a", "b", "c"}, "\n  ", 2) == "\n  a\n  b\n  and 1 more");
}

TEST_CASE("UTF-8 is what RFC 3629 says: no overlong forms, no surrogates, at most U+10FFFF") {
  for (const char* good :
       {"", "abc", "\u00e4\u20ac", "\U0001F600", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
    CAPTURE(good);
    CHECK(is_utf8(good));
  }
  for (const char* bad :
       {"\xff", "\x80", "a\xc3", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_utf8(bad));
  }
  CHECK(utf8_length("") == 0);
  CHECK(utf8_length("\u20acx") == 3);
  CHECK(text_width("\u00e4\u20ac") == 2);
}

TEST_CASE("a long text is cut to so many bytes, never inside a character") {
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("abcd", 3) == "abc...");
  CHECK(shortened("ab\u20ac", 4) == "ab...");
  CHECK(shortened("ab\u20ac", 5) == "ab\u20ac");
  CHECK(shortened("abcd", 3, " (cut)") == "abc (cut)");
  CHECK(cut_position("ab\u20acc", 3) == 2);
  CHECK(cut_position("ab\u20acc", 99) == 6);
  // What is no UTF-8 is cut too.
  CHECK(shortened("\x80\x80\x80\x80", 3) == "...");
}

TEST_CASE("names are cut in the middle, of whole characters, when that keeps them apart") {
  CHECK((shortened_names({"short", "2026-11-21T10-00-00_digits"}, 13) ==
         Names{"short", "2026-...igits"}));
  CHECK((shortened_names({"ääääääääää"}, 7) == Names{"ää...ää"}));
  // These two would look alike.
  const Names alike = {"validation/eval_op/a/accuracy", "validation/eval_op/b/accuracy"};
  CHECK((shortened_names(alike, 15) == alike));
  CHECK((shortened_names({"validation/a", "validation/a"}, 7) == Names{"va.../a", "va.../a"}));
}

TEST_CASE("names of the compiler are given as people write them") {
  CHECK(demangled(typeid(UsageError).name()) == "stepop::UsageError");
  CHECK(demangled("no such name") == "no such name");
}

TEST_CASE("a path is shortened to the words that tell it from the others") {
  using Paths = std::vector<std::string>;
  CHECK(short_paths({"optimizer/lr", "seed"}) == Paths{"lr", "seed"});
  CHECK(short_paths({"a/optimizer/lr", "b/optimizer/lr", "model/c"}) ==
        Paths{"a/optimizer/lr", "b/optimizer/lr", "c"});
  CHECK(short_paths({"lr", "optimizer/lr", "x/y/lr"}) == Paths{"lr", "optimizer/lr", "y/lr"});
  CHECK(short_paths({"model/hidden/0", "a/b/12"}) == Paths{"hidden/0", "b/12"});
  CHECK(short_paths({}).empty());
}

}  // namespace text_test
}  // namespace stepop
