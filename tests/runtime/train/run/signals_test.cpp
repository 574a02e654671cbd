#include "runtime/train/run/signals.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/message_of.h"

namespace stepop {
namespace run_signals_test {

TEST_CASE("every signal that asks to end sets the flag, and the guard's end clears it") {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    const SignalGuard guard;
    CHECK(SignalGuard::received() == 0);
    throw_if_signal_arrived();
    raise(number);
    CHECK(SignalGuard::received() == number);
    try {
      throw_if_signal_arrived();
      FAIL("nothing was thrown");
    } catch (const Interrupted& interrupted) {
      CHECK(interrupted.exit_code() == 128 + number);
      CHECK(interrupted.what() == signal_name(number) + " arrived");
    }
  }
  CHECK(SignalGuard::received() == 0);
  CHECK(signal_name(SIGUSR1) == "SIGUSR1");
}

TEST_CASE("a second signal ends the process at once with its number") {
  const pid_t child = fork();
  if (child == 0) {
    const SignalGuard guard;
    raise(SIGUSR1);
    raise(SIGTERM);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGTERM);
}

TEST_CASE("a second signal that is SIGUSR1 changes nothing") {
  const pid_t child = fork();
  if (child == 0) {
    const SignalGuard guard;
    raise(SIGTERM);
    raise(SIGUSR1);
    _exit(SignalGuard::received());
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == SIGTERM);
}

TEST_CASE("a closed pipe is an error of write, not the end") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  close(ends[0]);
  const SignalGuard guard;
  CHECK(write(ends[1], "x", 1) == -1);
  CHECK(errno == EPIPE);
  close(ends[1]);
}

TEST_CASE("SIGHUP stays ignored under nohup") {
  const auto before = signal(SIGHUP, SIG_IGN);
  {
    const SignalGuard guard;
    raise(SIGHUP);
    CHECK(SignalGuard::received() == 0);
  }
  signal(SIGHUP, before);
}

}  // namespace run_signals_test
}  // namespace stepop
