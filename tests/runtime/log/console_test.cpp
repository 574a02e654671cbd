#include "runtime/log/console.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace {

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
    console.debug("too much");
  });
  CHECK(result.out == "before the file\nafter\n");
  CHECK(std::count(result.log.begin(), result.log.end(), '\n') == 3);
  CHECK(result.log.find(" before the file\n") == 19);  // behind the time
  CHECK(result.log.ends_with(" for the log alone\n"));
}

TEST_CASE("a file gets no control character and no progress bar") {
  const Printed result = printed(LogLevel::kInfo, [](Console& console) {
    console.progress("━━━╸── 50%");
    console.info("a \x1b[1mbold\x1b[0m\rclaim");
    console.detail("loss 0.3");
  });
  CHECK(result.out == "before the file\na [1mbold[0mclaim\nloss 0.3\n");
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

TEST_CASE("an unknown level is refused with those that there are") {
  CHECK(parse_log_level("warn") == LogLevel::kWarning);
  CHECK(message_of([] { parse_log_level("loud"); }) ==
        "-l: unknown log level \"loud\"; there are debug, info, warn, critical");
}

}  // namespace
}  // namespace stepop
