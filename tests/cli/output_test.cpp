#include <doctest/doctest.h>

#include "tests/cli/digits_run.h"

namespace stepop {
namespace output_test {

TEST_CASE("a run whose terminal has gone trains on") {
  const ScratchFolder folder;
  run_well(folder, "stepop -b CONFIG -t --num_epochs 1 > /dev/full");
  run_well(folder, "stepop -b CONFIG -t --num_epochs 1 >&-");
  CHECK(std::filesystem::exists(folder / "logs"));
}

TEST_CASE("an error is an exit status when nobody reads its message") {
  const ScratchFolder folder;
  CHECK(run_in(folder, "stepop -b none.yaml -t 2>&-").exit_code == 2);
  CHECK(run_in(folder, "stepop -b none.yaml -t 2>/dev/full").exit_code == 2);
}

TEST_CASE("a list, a config or a help that the disk has no room for is an error") {
  const ScratchFolder folder;
  for (const std::string words : {"list", "--help", "--version", "config -b CONFIG"}) {
    std::string line = "stepop " + words + " > /dev/full";
    if (const size_t at = line.find("CONFIG"); at != std::string::npos) {
      line.replace(at, 6, kConfig);
    }
    CAPTURE(line);
    const CommandResult result = run_in(folder, line);
    CHECK(result.err == "stepop: cannot write to the standard output: No space left on device\n");
    CHECK(result.exit_code == 1);
  }
}

TEST_CASE("an output that may not grow is an error with a message, not a signal") {
  const ScratchFolder folder;
  for (const std::string command : {"list", "--help"}) {
    const CommandResult result = run_in(folder, "(ulimit -f 1; stepop " + command + " > out)");
    CHECK(result.err == "stepop: cannot write to the standard output: File too large\n");
    CHECK(result.exit_code == 1);
  }
}

TEST_CASE(
    "a command ends without the destructors of what was there before, unless for a profiler") {
  const ScratchFolder folder;
  const std::string list =
      "STEPOP_TEST_TELLS_END=1 '" STEPOP_BINARY_DIR "/stepop_slow' list >/dev/null";
  CHECK(run_in(folder, list).err == "");
  CHECK(run_in(folder, "export LD_PRELOAD=libm.so.6; " + list).err == "destroyed\n");
}

}  // namespace output_test
}  // namespace stepop
