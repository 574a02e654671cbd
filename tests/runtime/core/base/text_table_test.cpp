#include "runtime/core/base/text_table.h"

#include <doctest/doctest.h>

#include <string>

namespace stepop {
namespace text_table_test {

TEST_CASE("columns are as wide as their widest cell, numbers to the right, no spaces at the end") {
  TextTable table({{"run"}, {"step", true}, {"note"}});
  table.add({"a", "5", ""});
  table.add({"longer", "1,234", "best"});
  CHECK(table.text() ==
        "run      step  note\n"
        "a           5\n"
        "longer  1,234  best\n");
  CHECK(table.width() == 19);
}

TEST_CASE("characters are counted, not bytes, and control characters cannot disturb a table") {
  TextTable table({{"ä€"}, {"b"}});
  table.add({"ö", "1"});
  table.add({"a\n\x1b[0m", "2"});
  CHECK(table.text() ==
        "ä€            b\n"
        "ö             1\n"
        "a\\x0a\\x1b[0m  2\n");
}

TEST_CASE("a table without titles has no line for them") {
  TextTable table({{""}, {""}});
  table.add({"a", "b"});
  CHECK(table.text() == "a  b\n");
}

TEST_CASE("a table that is too wide becomes several, each with the first columns") {
  TextTable table({{"run"}, {"lr", true}, {"a long title"}, {"b", true}});
  table.add({"x", "0.1", "u", "1"});
  table.add({"y", "0.25", "v", "2"});
  const auto texts = [&](size_t most) {
    std::string text;
    for (const auto& part : table.parts(most, 1)) text += part.text() + "|\n";
    return text;
  };
  CHECK(texts(table.width()) == table.text() + "|\n");
  CHECK(texts(table.width() - 1) ==
        "run    lr  a long title\n"
        "x     0.1  u\n"
        "y    0.25  v\n|\n"
        "run  b\n"
        "x    1\n"
        "y    2\n|\n");
  CHECK(table.parts(3, 1).size() == 3);  // one column each, though it is wider
}

}  // namespace text_table_test
}  // namespace stepop
