#include "runtime/system/child_process.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <string>

#include "tests/message_of.h"

namespace stepop {
namespace child_process_test {

TEST_CASE("a program's streams and its exit code are returned") {
  const ChildResult result = run_child({"sh", "-c", "echo out; echo err >&2; exit 3"});
  CHECK(result.out == "out\n");
  CHECK(result.err == "err\n");
  CHECK(result.exit_code == 3);
  CHECK(result.signal == 0);
}

TEST_CASE("a program that a signal ended is reported as such, and has no input to wait for") {
  CHECK(run_child({"sh", "-c", "kill -9 $$"}).signal == SIGKILL);
  CHECK(run_child({"cat"}).out.empty());
}

TEST_CASE("of much output the end is kept") {
  const ChildResult result =
      run_child({"sh", "-c", "seq 1 300000; seq 1 20000 >&2"}, {}, /*most_err=*/100);
  CHECK(result.out.size() == 1'000'000);
  CHECK(result.out.ends_with("\n300000\n"));
  CHECK(result.err.size() == 100);
  CHECK(result.err.ends_with("\n20000\n"));
}

TEST_CASE("a program that cannot be started is named with the reason") {
  CHECK(message_of([] { run_child({"/none/such"}); }) ==
        "cannot run /none/such: No such file or directory");
}

TEST_CASE("an interrupt ends the program and passes") {
  int looks = 0;
  const auto interrupt = [&] {
    if (++looks == 3) throw Interrupted("asked to end");
  };
  CHECK(message_of([&] { run_child({"sleep", "60"}, interrupt); }) == "asked to end");
}

}  // namespace child_process_test
}  // namespace stepop
