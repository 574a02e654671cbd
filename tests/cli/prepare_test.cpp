// `stepop prepare`: what is kept, and its removal.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "runtime/tools/project/kept_files.h"
#include "tests/cli/code_run.h"

namespace stepop {
namespace prepare_test {

TEST_CASE("prepare --clean removes what stepop keeps, says how much, and leaves all else") {
  const ScratchFolder folder;
  const std::string key = "0123456789abcdef";
  folder.write("cache/" + key + ".so.json", "[]");
  folder.write("cache/" + key + "-01234567.so", std::string(500, 'x'));
  folder.write("cache/" + key + ".o.json", "[]");
  folder.write("cache/" + key + "-01234567.o", std::string(496, 'x'));
  folder.write("cache/headers-" + key + "/precompiled.h.gch", std::string(5000, 'x'));
  folder.write("cache/tuned/" + key + ".yaml", "a: 1\n");
  folder.write("cache/tokens/" + key + ".tokens", "12");
  for (const char* other : {"notes.txt", "0123.json", "0123456789abcdef"}) {
    folder.write(std::string("cache/") + other, "mine");
  }
  const auto result = run_with_cache(folder, "stepop prepare --clean");
  CHECK(result.err == "");
  CHECK(result.out ==
        "removed compiled code: 1.0 kB\nremoved precompiled headers: 5.0 kB\n"
        "removed settings of stepop tune: 5 B\nremoved tokens of texts: 2 B\n");
  CHECK(run_in(folder, "ls cache").out == "0123.json\n0123456789abcdef\nnotes.txt\n");
  CHECK(run_with_cache(folder, "stepop prepare --clean").out == "");
}

TEST_CASE("what is kept is a table with sizes and folders") {
  CHECK(kept_files_table({}) == "nothing is kept\n");
  CHECK(kept_files_table({{.what = "compiled code", .where = "/a", .bytes = 1000},
                          {.what = "tokens of texts", .where = "/a", .bytes = 2}}) ==
        "kept               size  where\n"
        "compiled code    1.0 kB  /a\n"
        "tokens of texts     2 B  /a\n"
        "stepop prepare --clean removes all but what is of the installation\n");
}

}  // namespace prepare_test
}  // namespace stepop
