#include "runtime/core/log/run_log.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <memory>

#include "runtime/core/log/console.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace run_log_test {

TEST_CASE("lines of before the console was there come first, in their order") {
  const ScratchFolder folder;
  RunLog log;
  log.info("in a constructor");
  log.warn("a warning");
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out{std::tmpfile(), std::fclose};
    Console console(LogLevel::kInfo, out.get());
    console.open_log_file(folder / "log.txt");
    log.begin(console);
    log.info("in a step");
  }
  const std::string text = read_bytes(folder / "log.txt");
  const size_t first = text.find("in a constructor\n");
  const size_t second = text.find("warning: a warning\n");
  const size_t third = text.find("in a step\n");
  REQUIRE(third != std::string::npos);
  CHECK(first < second);
  CHECK(second < third);
}

}  // namespace run_log_test
}  // namespace stepop
