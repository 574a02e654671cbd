// `stepop prepare`: what is kept, what is said of it, and its removal.
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
  folder.write("cache/measured.json", "{ }");
  folder.write("cache/tuned/" + key + ".yaml", "a: 1\n");
  folder.write("cache/tokens/" + key + ".tokens", "12");
  for (const char* other : {"notes.txt", "0123.json", "0123456789abcdef"}) {
    folder.write(std::string("cache/") + other, "mine");
  }
  const auto result = run_with_cache(folder, "stepop prepare --clean");
  CHECK(result.err == "");
  CHECK(result.out ==
        "removed compiled code: 1.0 kB\nremoved precompiled headers: 5.0 kB\n"
        "removed settings of stepop tune: 5 B\nremoved times of precompiling: 3 B\n"
        "removed tokens of texts: 2 B\n");
  CHECK(run_in(folder, "ls cache").out == "0123.json\n0123456789abcdef\nnotes.txt\n");
  CHECK(run_with_cache(folder, "stepop prepare --clean").out == "");
}

TEST_CASE("before a header is precompiled, what it took the last time is said, and nothing else") {
  const ScratchFolder folder;
  write_source(folder, "int answer = 1;\n");
  // A compiler like GCC, whose precompiled header has 5,000 bytes and is used by no source.
  folder.write("quick.sh", R"(#!/bin/sh
for word; do
  case $before in -o) object=$word;; -MF) rule=$word;; esac
  before=$word
done
case "$*" in
  *c++-header*) head -c 5000 /dev/zero >"$object";;
  *' -c '*) echo "object: one.cpp" >"$rule"; echo 'int answer = 1;' | c++ -fPIC -x c++ -c - -o "$object";;
  *) exec c++ "$@";;
esac
)");
  const auto list = [&](const std::string& before) {
    return run_with_cache(folder,
                          "cp quick.sh other.sh; chmod +x *.sh\n"
                          "export STEPOP_CXX=\"$PWD/quick.sh\"\n" +
                              before + "\nstepop list -b one.yaml >/dev/null")
        .err;
  };
  const std::string begins = "precompiling the headers of stepop and LibTorch, once";
  const std::string ends = "s: 5.0 kB in " + folder.path("cache/headers-");
  const std::string first = list("");
  CAPTURE(first);
  CHECK(first.starts_with(begins + "\nprecompiled in "));
  CHECK(contains(first, ends));
  CHECK(first.ends_with("\ncompiling one.cpp\n"));
  CHECK(list("") == "");
  // Headers that changed, or were unused for long, are precompiled again.
  const std::string again = "rm -r cache/headers-*; echo 'int more;' >>one.cpp; ";
  const std::string set =
      "sed -i 's/\"seconds\": [-+.e0-9]*/\"seconds\": 12.3/' cache/measured.json";
  CHECK(list(again + set).starts_with(begins + " (12 s and 5.0 kB the last time here)\n"));
  CHECK(list(again + set + "; STEPOP_CXX=\"$PWD/other.sh\"").starts_with(begins + "\n"));
  for (const std::string damaged : {"{", "7", "[1]", "{\"a\": 1}"}) {
    CAPTURE(damaged);
    CHECK(list(again + "echo '" + damaged + "' >cache/measured.json").starts_with(begins + "\n"));
  }
  const std::string broken = "sed -i 's|: [0-9.][-+.e0-9]*|: \"much\"|' cache/measured.json";
  CHECK(list(again + broken).starts_with(begins + "\n"));
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
