#include "runtime/core/log/console.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace console_test {

/// What a console prints into a file and what it puts into its log.
struct Printed {
  std::string out;
  std::string log;
};

template <class Say>
Printed printed(LogLevel level, const Say& say) {
  const ScratchFolder folder;
  std::FILE* out = std::fopen(folder.path("out").c_str(), "w");
  {
    Console console(level, out);
    console.info("before the file");
    console.open_log_file(folder.path("log"));
    say(console);
  }
  std::fclose(out);
  return {read_bytes(folder.path("out")), read_bytes(folder.path("log"))};
}

TEST_CASE("a log file begins with what was said before it was opened") {
  const Printed result = printed(LogLevel::kInfo, [](Console& console) {
    console.info("after");
    console.record("for the log alone");
    console.debug("for the level debug");
  });
  CHECK(result.out == "before the file\nafter\n");
  CHECK(std::count(result.log.begin(), result.log.end(), '\n') == 3);
  CHECK(result.log.find(" before the file\n") == 24);  // behind the time and its zone
  CHECK(result.log.ends_with(" for the log alone\n"));
}

TEST_CASE("the level debug shows and keeps what others leave out") {
  const Printed result =
      printed(LogLevel::kDebug, [](Console& console) { console.debug("wrote a file"); });
  CHECK(result.out == "before the file\nwrote a file\n");
  CHECK(result.log.ends_with(" wrote a file\n"));
}

/// What a terminal gets while `say` uses a console on it, as bytes.
template <class Say>
std::string on_terminal(LogLevel level, const Say& say) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const int user = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(user >= 0);
  const char* kind = getenv("TERM");
  const std::string kind_before = kind != nullptr ? kind : "dumb";
  setenv("TERM", "xterm", 1);
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  dup2(user, STDOUT_FILENO);
  {
    Console console(level);
    say(console);
  }
  std::fflush(stdout);
  dup2(before, STDOUT_FILENO);
  close(before);
  setenv("TERM", kind_before.c_str(), 1);
  // What was written comes in pieces; this comes last.
  const std::string end = "<end>";
  REQUIRE(write(user, end.data(), end.size()) == static_cast<ssize_t>(end.size()));
  std::string text;
  while (!text.ends_with(end)) {
    std::array<char, 1000> piece{};
    const ssize_t size = read(terminal, piece.data(), piece.size());
    REQUIRE(size > 0);
    text.append(piece.data(), static_cast<size_t>(size));
  }
  text.resize(text.size() - end.size());
  close(user);
  close(terminal);
  std::erase(text, '\r');  // of the terminal's line ends, and before a bar
  return text;
}

constexpr const char* kClear = "\x1b[K";

TEST_CASE("what others print takes the progress bar away first") {
  const std::string shown = on_terminal(LogLevel::kInfo, [](Console& console) {
    console.progress("bar 1");
    std::cout << "by cout" << std::endl;
    console.progress("bar 2");
    std::printf("by printf\n");
    console.progress("bar 3");
    console.info("ours");
  });
  CHECK(shown == std::string("bar 1") + kClear + kClear + "by cout\n" + "bar 2" + kClear + kClear +
                     "by printf\n" + "bar 3" + kClear + kClear + "ours\n");
}

TEST_CASE("a line of ours does not stick to what others began, nor does a bar cover it") {
  const std::string shown = on_terminal(LogLevel::kInfo, [](Console& console) {
    std::cout << "half a line" << std::flush;
    console.progress("bar");
    console.info("ended: stopped by SIGTERM");
    std::cout << 42 << std::flush;
    console.end_progress();
  });
  CHECK(shown == "half a line\nended: stopped by SIGTERM\n42\n");
}

TEST_CASE("streams are as they were when the console is gone") {
  std::streambuf* const before = std::cout.rdbuf();
  std::FILE* const file = stdout;
  CHECK(on_terminal(LogLevel::kInfo, [](Console&) {}) == "");
  CHECK(std::cout.rdbuf() == before);
  CHECK(stdout == file);
}

TEST_CASE("lines for the log file stand on a terminal only with the level debug") {
  const auto say = [](Console& console) { console.detail("train/log_op: loss 0.3"); };
  CHECK(on_terminal(LogLevel::kInfo, say) == "");
  CHECK(on_terminal(LogLevel::kDebug, say) == "train/log_op: loss 0.3\n");
}

TEST_CASE("a file gets no control character and no progress bar") {
  const Printed result = printed(LogLevel::kInfo, [](Console& console) {
    console.progress("━━━╸── 50%");
    console.info("a \x1b[1mbold\x1b[0m\rclaim");
    console.detail("loss 0.3");
  });
  CHECK(result.out == "before the file\na \\x1b[1mbold\\x1b[0m\\x0dclaim\nloss 0.3\n");
  CHECK(result.log.find('\x1b') == std::string::npos);
  CHECK(result.log.find('\r') == std::string::npos);
  CHECK(result.log.find("50%") == std::string::npos);
}

TEST_CASE("a level hides what is below it, in the log as well") {
  const Printed result =
      printed(LogLevel::kWarning, [](Console& console) { console.info("hidden"); });
  CHECK(result.out.empty());
  CHECK(result.log.empty());
}

TEST_CASE("a log file that cannot be opened or written is an error, once") {
  const ScratchFolder folder;
  const std::string path = folder.path("log");
  std::FILE* out = std::fopen(folder.path("out").c_str(), "w");
  {
    Console console(LogLevel::kInfo, out);
    CHECK(message_of([&] { console.open_log_file(folder.path("none/log")); }) ==
          "cannot open " + folder.path("none/log") + ": No such file or directory");
    FailingFiles files;
    console.open_log_file(path);
    console.info("one");
    files.leave_room(30);
    CHECK(message_of([&] { console.info("two"); }) == "no error");
    CHECK(message_of([&] { console.info("three"); }) ==
          "cannot write " + path + ": No space left on device");
    CHECK(message_of([&] { console.info("four"); }) == "no error");
    console.record("five");
  }
  std::fclose(out);
  CHECK(read_bytes(folder.path("out")) == "one\ntwo\nthree\nfour\n");
  const std::string log = read_bytes(path);
  CHECK(log.ends_with(" two\n"));
  CHECK(std::count(log.begin(), log.end(), '\n') == 2);
}

TEST_CASE("a log file on a full disk loses nothing of what was said before it was opened") {
  const ScratchFolder folder;
  FailingFiles files;
  Console console(LogLevel::kDebug, stderr);
  console.record("before");
  files.fail(FileCall::kOpen, 1, ENOSPC);
  CHECK(message_of([&] { console.open_log_file(folder.path("log")); }) ==
        "cannot open " + folder.path("log") + ": No space left on device");
  console.open_log_file(folder.path("log"));
  CHECK(read_bytes(folder.path("log")).ends_with(" before\n"));
}

/// What a console puts into its log when nobody reads what it prints to `out`.
template <class Leave>
std::string log_without_reader(std::FILE* out, const Leave& leave) {
  const ScratchFolder folder;
  {
    Console console(LogLevel::kInfo, out);
    console.open_log_file(folder.path("log"));
    leave();
    console.info("one");
    console.progress("50%");
    console.info("two");
    console.detail("three");
  }
  std::fclose(out);
  const std::string log = read_bytes(folder.path("log"));
  CHECK(std::count(log.begin(), log.end(), '\n') == 3);
  return log;
}

TEST_CASE("a pipe that nobody reads any more is no error, and the log goes on") {
  const sighandler_t handler = signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> pipe{};
  REQUIRE(pipe2(pipe.data(), O_CLOEXEC) == 0);
  const std::string log = log_without_reader(fdopen(pipe[1], "w"), [&] { close(pipe[0]); });
  signal(SIGPIPE, handler);
  CHECK(log.ends_with(" three\n"));
}

TEST_CASE("a terminal that is gone is no error, and the log goes on") {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const int user = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(user >= 0);
  const std::string log = log_without_reader(fdopen(user, "w"), [&] { close(terminal); });
  CHECK(log.ends_with(" three\n"));
}

TEST_CASE("so is a full disk under the file that the console is sent to") {
  std::FILE* full = std::fopen("/dev/full", "w");
  REQUIRE(full != nullptr);
  CHECK(log_without_reader(full, [] {}).ends_with(" three\n"));
}

TEST_CASE("a slow reader misses lines and finds the next ones") {
  std::array<int, 2> pipe{};
  REQUIRE(pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) == 0);
  std::FILE* out = fdopen(pipe[1], "w");
  Console console(LogLevel::kInfo, out);
  for (int i = 0; i < 30; ++i) console.info(std::string(5000, 'x'));
  std::string found(1'000'000, '\0');
  CHECK(read(pipe[0], found.data(), found.size()) > 0);
  console.info("next");
  const ssize_t size = read(pipe[0], found.data(), found.size());
  REQUIRE(size > 0);
  CHECK(found.substr(0, static_cast<size_t>(size)).ends_with("next\n"));
  std::fclose(out);
  close(pipe[0]);
}

TEST_CASE("an unknown level is refused with those that there are") {
  CHECK(parse_log_level("warn") == LogLevel::kWarning);
  CHECK(message_of([] { parse_log_level("loud"); }) ==
        "-l: unknown log level \"loud\"; there are debug, info, warn, critical");
}

}  // namespace console_test
}  // namespace stepop
