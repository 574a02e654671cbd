// Several sources of one config: what is compiled again, counted by a compiler that logs.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <thread>

#include "tests/cli/code_run.h"

namespace stepop {
namespace code_objects_test {

/// Two sources, which call each other and share a header, and a compiler that writes a line for
/// each source that it compiles and for each library that it links.
struct Sources {
  ScratchFolder folder;

  Sources() {
    write_source(folder, "");
    folder.write("shared.h", "inline int shared() { return 1; }\n");
    folder.write("own.h", "inline int own() { return 1; }\n");
    folder.write("one.cpp", "#include \"shared.h\"\nint two();\nint one() { return two(); }\n");
    folder.write("two.cpp", "#include \"shared.h\"\n#include \"own.h\"\nint two() { return 2; }\n");
    folder.write("logs.sh",
                 "#!/bin/sh\n"
                 "for word; do case $word in *.cpp) echo \"${word##*/}\" >> \"$SEEN\";; "
                 "-shared) echo link >> \"$SEEN\";; esac; done\n"
                 "exec c++ \"$@\"\n");
    run_in(folder, "chmod +x logs.sh");
  }

  CommandResult run(const std::string& line) const {
    return run_with_cache(folder,
                          "export SEEN=\"$PWD/seen\" STEPOP_CXX=\"$PWD/logs.sh\"\n"
                          "rm -f seen; touch seen\n" +
                              line);
  }

  /// What the compiler was called for by a start with these sources, sorted.
  std::string seen(const std::string& code = "one.cpp, two.cpp") const {
    const auto result = run("stepop list -b one.yaml --code '[" + code +
                            "]' >/dev/null && sort seen | tr '\\n' ' '");
    CHECK_MESSAGE(result.exit_code == 0, result.err);
    return result.out;
  }

  void edit(const std::string& name, const std::string& line) const {
    write_bytes(folder / name, read_bytes(folder / name) + line + "\n");
  }
};

TEST_CASE("of two sources only the changed one is compiled") {
  const Sources sources;
  CHECK(sources.seen() == "link one.cpp two.cpp ");
  CHECK(sources.seen() == "");
  sources.edit("two.cpp", "int three() { return 3; }");
  CHECK(sources.seen() == "link two.cpp ");
  run_in(sources.folder, "sed -i '2s/$/  \\/\\/ a comment/' one.cpp");
  CHECK(sources.seen() == "");
  // What was compiled once is linked again, also in a copy and in another order.
  run_in(sources.folder, "sed -i '/three/d' two.cpp");
  CHECK(sources.seen() == "");
  CHECK(sources.seen("two.cpp, one.cpp") == "link ");
  sources.folder.write("three.cpp", "int three() { return 3; }\n");
  CHECK(sources.seen("one.cpp, two.cpp, three.cpp") == "link three.cpp ");
  const auto copied = sources.run(
      "mkdir copy && cp *.cpp *.h *.yaml copy && cd copy && "
      "stepop list -b one.yaml --code '[three.cpp, two.cpp, one.cpp]' >/dev/null && cat ../seen");
  CHECK(copied.out == "link\n");
  CHECK(copied.err == "");
}

TEST_CASE("a second source does not cost the first again, and a line names what is compiled") {
  const Sources sources;
  sources.folder.write("one.cpp", "int one() { return 1; }\n");
  CHECK(sources.seen("one.cpp") == "link one.cpp ");
  const auto both = sources.run("stepop list -b one.yaml --code '[one.cpp, two.cpp]' >/dev/null");
  CHECK(both.err == "compiling two.cpp\n");
}

TEST_CASE("a header that changes compiles the sources that include it") {
  const Sources sources;
  CHECK(sources.seen() == "link one.cpp two.cpp ");
  sources.edit("own.h", "inline int more() { return 2; }");
  CHECK(sources.seen() == "link two.cpp ");
  sources.edit("shared.h", "inline int most() { return 3; }");
  CHECK(sources.seen() == "link one.cpp two.cpp ");
  run_in(sources.folder, "sed -i '1s/$/  \\/\\/ a comment/' shared.h");
  CHECK(sources.seen() == "");
  // A header that comes back, while another one stays, brings its objects back.
  run_in(sources.folder, "sed -i '/most/d' shared.h");
  CHECK(sources.seen() == "");
  sources.edit("one.cpp", "int last = 1;");
  CHECK(sources.seen() == "link one.cpp ");
}

TEST_CASE("other flags and another compiler compile all sources") {
  const Sources sources;
  CHECK(sources.seen() == "link one.cpp two.cpp ");
  CHECK(sources
            .run("stepop list -b one.yaml --code '[one.cpp, two.cpp]' --code_flags '[-DX=1]' "
                 ">/dev/null && sort seen | tr '\\n' ' '")
            .out == "link one.cpp two.cpp ");
  CHECK(sources
            .run("cp logs.sh again.sh; STEPOP_CXX=\"$PWD/again.sh\" stepop list -b one.yaml "
                 "--code '[one.cpp, two.cpp]' >/dev/null && sort seen | tr '\\n' ' '")
            .out == "link one.cpp two.cpp ");
}

TEST_CASE("the errors of all sources come in the order of the config, and the others are kept") {
  const Sources sources;
  sources.edit("two.cpp", "int wrong = nothing;");
  const std::string start = "stepop list -b one.yaml --code '[one.cpp, two.cpp]'; cat seen";
  const auto one = sources.run(start);
  CHECK(contains(one.err, "compiling one.cpp, two.cpp\ntwo.cpp:4:13: error: "));
  CHECK_FALSE(contains(one.out, "link"));
  const auto again = sources.run(start);
  CHECK(again.out == "two.cpp\n");
  CHECK(contains(again.err, "compiling two.cpp\ntwo.cpp:4:13: error: "));

  sources.edit("one.cpp", "int wrong_too = nothing;");
  const auto both = sources.run("unset STEPOP_CXX; " + start);
  const size_t first = both.err.find("\none.cpp:4:17: error: ");
  const size_t second = both.err.find("\ntwo.cpp:4:13: error: ");
  CHECK(first < second);
  CHECK(second != std::string::npos);
  // How to take another compiler, which is said when Clang compiled, is said once, at the end.
  CHECK(both.err.find("(compiled with ") > second);
  CHECK(both.err.find("(compiled with ") == both.err.rfind("(compiled with "));
  const auto turned = sources.run("stepop list -b one.yaml --code '[two.cpp, one.cpp]'");
  CHECK(turned.err.find("\none.cpp:4:17: error: ") > turned.err.find("\ntwo.cpp:4:13: error: "));
  // Nothing half is left.
  CHECK(run_in(sources.folder, "ls cache | grep tmp").out == "");

  run_in(sources.folder, "sed -i '/wrong/d' one.cpp two.cpp");
  CHECK(sources.seen() == "link two.cpp ");
}

TEST_CASE("a function in two sources is an error of the linker, one without a name is each's own") {
  const Sources sources;
  sources.edit("one.cpp", "namespace { int mine() { return 1; } }\nint a() { return mine(); }");
  sources.edit("two.cpp", "namespace { int mine() { return 2; } }\nint b() { return mine(); }");
  CHECK(sources.seen() == "link one.cpp two.cpp ");
  sources.edit("two.cpp", "int one() { return 2; }");
  const auto twice = sources.run("stepop list -b one.yaml --code '[one.cpp, two.cpp]'");
  CHECK(twice.exit_code == 1);
  CHECK(contains(twice.err, "multiple definition of `one()'"));
  CHECK(run_in(sources.folder, "ls cache | grep tmp").out == "");
}

TEST_CASE("two starts at once with one source in common compile it once") {
  const Sources sources;
  sources.folder.write("three.cpp", "int two() { return 3; }\n");
  // The compilation of one.cpp lasts until the other start waits for it.
  sources.folder.write("slow.sh",
                       "#!/bin/sh\ncase \"$*\" in *one.cpp*) for i in $(seq 600); do\n"
                       "grep -q waiting \"${SEEN%seen}\"/?.txt && break; sleep 0.1; done;; esac\n"
                       "exec \"${SEEN%seen}\"/logs.sh \"$@\"\n");
  const std::string list = "stepop list -b one.yaml --code ";
  const auto both = sources.run("chmod +x slow.sh; STEPOP_CXX=\"$PWD/slow.sh\"\n" + list +
                                "'[one.cpp, two.cpp]' >/dev/null 2>a.txt &\n" + list +
                                "'[one.cpp, three.cpp]' >/dev/null 2>b.txt\n"
                                "wait; cat a.txt b.txt | grep waiting; sort seen");
  CHECK(both.out ==
        "waiting for another stepop, which compiles the same code\n"
        "link\nlink\none.cpp\nthree.cpp\ntwo.cpp\n");
}

TEST_CASE("two sources are compiled side by side") {
  if (std::thread::hardware_concurrency() < 2) return;
  const Sources sources;
  // Each compilation ends after the other has begun.
  sources.folder.write("meets.sh",
                       "#!/bin/sh\nhere=${SEEN%seen}\n"
                       "case \"$*\" in *one.cpp*) me=one other=two;; *two.cpp*) me=two other=one;; "
                       "*) exec c++ \"$@\";; esac\n"
                       "touch \"$here/$me.begun\"\n"
                       "for i in $(seq 600); do [ -e \"$here/$other.begun\" ] && exec c++ \"$@\"; "
                       "sleep 0.1; done\nexit 1\n");
  const auto result = sources.run(
      "chmod +x meets.sh; STEPOP_CXX=\"$PWD/meets.sh\"\n"
      "stepop list -b one.yaml --code '[one.cpp, two.cpp]'");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
}

TEST_CASE("an interrupt ends all compilers, and keeps nothing half") {
  const Sources sources;
  sources.folder.write("hangs.sh",
                       "#!/bin/sh\ncase \"$*\" in *' -c '*) echo $$ >> \"$SEEN\"; exec sleep 600;; "
                       "esac\nexec c++ \"$@\"\n");
  const auto result = sources.run(
      "chmod +x hangs.sh; STEPOP_CXX=\"$PWD/hangs.sh\"\n"
      "'" STEPOP_BINARY_DIR
      "/stepop' -n x -b one.yaml -t --code '[one.cpp, two.cpp, one.cpp]' & it=$!\n"
      "for i in $(seq 600); do [ -s seen ] && break; sleep 0.1; done\n"
      "kill -INT $it; wait $it; echo $?\n"
      "for each in $(cat seen); do kill -0 $each 2>/dev/null && echo alive; done\n"
      "ls cache | grep tmp");
  CHECK(result.out == "130\n");
}

}  // namespace code_objects_test
}  // namespace stepop
