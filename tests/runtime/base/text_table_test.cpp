#include "runtime/base/text_table.h"

#include <doctest/doctest.h>

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
        "ä€      b\n"
        "ö       1\n"
        "a??[0m  2\n");
}

TEST_CASE("a table without titles has no line for them") {
  TextTable table({{""}, {""}});
  table.add({"a", "b"});
  CHECK(table.text() == "a  b\n");
}

}  // namespace text_table_test
}  // namespace stepop
