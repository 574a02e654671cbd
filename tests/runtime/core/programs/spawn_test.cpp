#include "runtime/core/programs/spawn.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "runtime/core/system/file_calls.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace spawn_test {

/// The standard output of a shell that runs `script`.
std::string output_of(Spawn program, const std::string& script) {
  const ScratchFolder folder;
  const OpenFile out = open_file(folder / "out", O_WRONLY | O_CREAT, "write");
  program.words = {"sh", "-c", script};
  program.out = out.number();
  const pid_t child = spawn(program);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  CHECK(WIFEXITED(status));
  return read_bytes(folder / "out");
}

TEST_CASE("variables are set, replaced and left out; the others stay") {
  ::setenv("STEPOP_TEST_KEPT", "kept", 1);
  ::setenv("STEPOP_TEST_REPLACED", "old", 1);
  ::setenv("STEPOP_TEST_LEFT_OUT", "old", 1);
  CHECK(output_of({.words = {},
                   .environment = {"STEPOP_TEST_SET=a=b", "STEPOP_TEST_REPLACED=new",
                                   "STEPOP_TEST_LEFT_OUT"}},
                  "echo $STEPOP_TEST_SET $STEPOP_TEST_KEPT $STEPOP_TEST_REPLACED "
                  "${STEPOP_TEST_LEFT_OUT-none}") == "a=b kept new none\n");
  for (const char* name : {"STEPOP_TEST_KEPT", "STEPOP_TEST_REPLACED", "STEPOP_TEST_LEFT_OUT"}) {
    ::unsetenv(name);
  }
}

TEST_CASE("open files reach the program only where it keeps them, and never those closed on exec") {
  constexpr int kOpen = 77;
  constexpr int kClosed = 78;
  const OpenFile null = open_file("/dev/null", O_RDONLY, "open");
  REQUIRE(::dup2(null.number(), kOpen) == kOpen);
  REQUIRE(::dup3(null.number(), kClosed, O_CLOEXEC) == kClosed);
  const std::string script =
      "for i in 77 78; do [ -e /proc/$$/fd/$i ] && echo open || echo closed; done";
  CHECK(output_of({}, script) == "closed\nclosed\n");
  CHECK(output_of({.words = {}, .keeps_files = true}, script) == "open\nclosed\n");
  ::close(kOpen);
  ::close(kClosed);
}

TEST_CASE("the input is empty, and the program leads its group or its session") {
  CHECK(output_of({}, "cat; ps -o pgid= -p $$ | tr -d ' ' | sed \"s/^$$\\$/own/\"") == "own\n");
  CHECK(output_of({.words = {}, .has_own_session = true},
                  "ps -o sid= -p $$ | tr -d ' ' | sed \"s/^$$\\$/own/\"") == "own\n");
}

TEST_CASE("a program that is not there is an error with its name") {
  CHECK(message_of([] { spawn({.words = {"stepop-no-such-program"}}); }) ==
        "cannot run stepop-no-such-program: No such file or directory");
}

}  // namespace spawn_test
}  // namespace stepop
