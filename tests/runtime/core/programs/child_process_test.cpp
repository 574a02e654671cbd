#include "runtime/core/programs/child_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

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

TEST_CASE("a program does not have what is open here, nor the locks on it") {
  const ScratchFolder folder;
  const std::string path = folder.write("locked", "");
  const int file = ::open(path.c_str(), O_RDWR);  // as libraries do, without O_CLOEXEC
  REQUIRE(::flock(file, LOCK_EX | LOCK_NB) == 0);
  OutputOfChild program({"sh", "-c", "echo started; sleep 100"});
  std::string said(100, '\0');
  while (program.read(said.data(), said.size(), 1000) == 0) {
  }
  ::close(file);
  const int again = ::open(path.c_str(), O_RDWR);
  CHECK(::flock(again, LOCK_EX | LOCK_NB) == 0);
  ::close(again);
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

TEST_CASE("this program is started again, in a group of its own, with its output in a file") {
  const ScratchFolder folder;
  const std::string output = folder.write("out.txt", "before\n");
  const std::unique_ptr<Child> child = start_self({"again", "--version"}, output);
  CHECK(::getpgid(child->pid()) != ::getpgid(0));
  while (!child->has_ended()) ::poll(nullptr, 0, 10);
  CHECK(WEXITSTATUS(child->status()) == 0);
  CHECK(read_bytes(output).starts_with("before\n[doctest] doctest version"));
  CHECK(message_of([] { start_self({"again"}, "/nowhere/out.txt"); }) ==
        "cannot write /nowhere/out.txt: No such file or directory");
}

TEST_CASE("a program beside this one has a session and variables of its own, and lives on") {
  const ScratchFolder folder;
  const std::string output = folder.write("out.txt", "before\n");
  const std::string end = folder.path("end");
  pid_t pid = 0;
  {
    const std::unique_ptr<Child> child =
        start_beside({"sh", "-c", "echo $A; until [ -e \"$0\" ]; do sleep 0.01; done", end}, output,
                     {"A=given"});
    pid = child->pid();
    CHECK(::getsid(pid) == pid);
  }
  CHECK(::waitpid(pid, nullptr, WNOHANG) == 0);
  folder.write("end", "");
  int status = -1;
  CHECK(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
  CHECK(read_bytes(output) == "before\ngiven\n");
}

}  // namespace child_process_test
}  // namespace stepop
