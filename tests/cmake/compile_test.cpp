// cmake/compile.sh, with a build that is none: what it says of the first build's time.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/cli/command.h"

namespace stepop {
namespace compile_test {

/// A tree whose build does what $BUILD says, and has one precompiled header, of `parts`.
struct Tree {
  ScratchFolder folder;

  Tree() {
    folder.write("cmake/compile.sh", read_bytes(STEPOP_SOURCE_DIR "/cmake/compile.sh"));
    folder.write("build/.keep", "");
    folder.write("bin/cmake", "#!/bin/bash\necho \"cmake $*\"\neval \"$BUILD\"\n");
    folder.write(
        "bin/ninja",
        "#!/bin/bash\n[[ $* == '-C build -t targets all' ]] || exit 1\n"
        "echo 'other.dir/cmake_pch.hxx.gch: CXX'\necho 'parts.dir/cmake_pch.hxx.gch: CXX'\n"
        "echo 'parts.dir/a.cpp.o: CXX'\n");
  }

  CommandResult compile(const std::string& build) const {
    return run_in(folder, "chmod +x bin/* cmake/compile.sh; export PATH=$PWD/bin:$PATH BUILD='" +
                              build + "'\ncmake/compile.sh all program parts");
  }
};

const std::string kFirst = "stepop: compiling build/program, for the first time here\n";
const std::string kCalled = "cmake --build build --target all\n";
/// The precompiled header is there, and what is said of it has been read.
const std::string kHeader =
    "mkdir build/parts.dir; touch build/parts.dir/cmake_pch.hxx.gch; "
    "for i in $(seq 600); do grep -q \"in all\" .out && break; sleep 0.1; done; ";

TEST_CASE("the first build says how long it takes, once its precompiled header is there") {
  const Tree tree;
  const auto result = tree.compile(kHeader + "touch build/program");
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  const std::string begin =
      kFirst + kCalled + "\rstepop: compiling build/program, which takes about ";
  CAPTURE(result.out);
  REQUIRE(result.out.starts_with(begin));
  size_t end = 0;
  const int minutes = std::stoi(result.out.substr(begin.size()), &end);
  CHECK(minutes >= 0);
  CHECK(result.out.substr(begin.size() + end) == " min in all on this machine\n");

  // What is built again says nothing.
  CHECK(tree.compile("").out == kCalled);
}

TEST_CASE("a first build that goes on after an interruption says no time") {
  const Tree tree;
  tree.folder.write("build/parts.dir/cmake_pch.hxx.gch", "");
  CHECK(tree.compile("touch build/program").out == kFirst + kCalled);
}

TEST_CASE("a build that fails ends with its exit code, and leaves no process") {
  const Tree tree;
  const auto result = tree.compile("exit 3");
  CHECK(result.exit_code == 3);
  CHECK(result.out == kFirst + kCalled);
  const auto left = run_in(tree.folder,
                           "alive() { for it in /proc/[0-9]*; do "
                           "[ \"$(readlink $it/cwd)\" = \"$PWD\" ] && "
                           "grep -qs compile.sh $it/cmdline && return 0; done; return 1; }\n"
                           "for i in $(seq 50); do alive || exit 0; sleep 0.1; done; exit 1");
  CHECK(left.exit_code == 0);
}

}  // namespace compile_test
}  // namespace stepop
