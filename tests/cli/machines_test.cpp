// Trainings on several machines, which machines.py makes up.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/cli/digits_run.h"
#include "tests/cli/small_training.h"
#include "tests/same_state.h"

namespace stepop {
namespace machines_test {

constexpr int kNotAllowed = 77;

const std::string kConfigText = small_training("{class: Synthetic, size: 64, shape: [1, 8, 8]}");

/// Trains on machines; `meanwhile`, a line of the shell, runs beside it. What each machine said is
/// in err.<rank>. False, with a message, where networks cannot be made.
bool train_on_machines(const ScratchFolder& folder, const std::string& options,
                       const std::string& words, CommandResult& result,
                       const std::string& meanwhile = ":") {
  folder.write("c.yaml", kConfigText);
  result = run_in(
      folder, fmt::format("{}({}) & python3 '{}/tests/cli/machines.py' {} "
                          "\"'{}/stepop' {}\"; status=$?; kill %1; exit $status",
                          kUntil, meanwhile, STEPOP_SOURCE_DIR, options, STEPOP_BINARY_DIR, words));
  if (result.exit_code != kNotAllowed) return true;
  MESSAGE("skipped: networks cannot be made here: " << result.err);
  return false;
}

/// The same on a link that is cut after some steps; `then` follows in the shell.
bool train_and_cut(const ScratchFolder& folder, int64_t steps, const std::string& then,
                   CommandResult& result) {
  return train_on_machines(
      folder, "--delay 1 --cut cut", fmt::format("-n a -b c.yaml -t --num_steps {}", steps), result,
      "until_ok 'ls logs/*/train/checkpoints/model-5.safetensors'; touch cut; " + then);
}

/// What the training ends with in two processes of one machine.
State expected_state(int steps) {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfigText);
  run_well(folder, fmt::format("stepop -n a -b c.yaml -t --processes 2 --num_steps {}", steps));
  return state_after(folder, steps);
}

TEST_CASE("machines that are far from each other, on a link that loses packets, lose no bit") {
  const ScratchFolder folder;
  CommandResult result;
  if (!train_on_machines(folder, "--delay 5 --loss 0.02", "-n a -b c.yaml -t", result)) return;
  CAPTURE(read_bytes(folder.path("err.0")) + read_bytes(folder.path("err.1")));
  REQUIRE(result.exit_code == 0);
  const std::string log = read_bytes(folder.path(only_run(folder)) + "/train/log.txt");
  CHECK(has(log, "on node0"));
  CHECK(has(log, "rank 1 on node1, process "));
  CHECK(differences(state_after(folder, 12), expected_state(12)) == "");
}

TEST_CASE("a link that is cut for a moment is not noticed") {
  const ScratchFolder folder;
  CommandResult result;
  if (!train_and_cut(folder, 40, "sleep 1.5; rm cut", result)) return;
  CAPTURE(read_bytes(folder.path("err.0")) + read_bytes(folder.path("err.1")));
  REQUIRE(result.exit_code == 0);
  CHECK(differences(state_after(folder, 40), expected_state(40)) == "");
}

TEST_CASE("a link that breaks ends the processes on both of its sides; the run resumes") {
  const ScratchFolder folder;
  CommandResult result;
  if (!train_and_cut(folder, 100'000, "sleep 60", result)) return;
  CAPTURE(result.out);
  CHECK(result.exit_code == 1);
  const std::string of_root = read_bytes(folder.path("err.0"));
  CAPTURE(of_root);
  CHECK(has(of_root, "rank 1 on node1, process "));
  CHECK((has(of_root, " has not been heard from for ") || has(of_root, " seconds for: ")));
  const std::string run = only_run(folder);
  CHECK(has(of_root, fmt::format("stepop -p {} -t", run)));
  const std::string of_other = read_bytes(folder.path("err.1"));
  CAPTURE(of_other);
  CHECK(has(of_other, "stepop: rank 1 on node1, process "));
  CHECK(has(of_other, "rank 0 on node0, process "));
  // Whichever its watch sees first.
  CHECK((has(of_other, " is gone: the connection to it broke") ||
         has(of_other, " did not answer for ")));
  const CommandResult resumed = run_in(
      folder, fmt::format("at=$(readlink {0}/train/checkpoints/latest.safetensors | tr -dc 0-9); "
                          "stepop -p {0} -t --processes 2 --num_steps $((at + 3)) && "
                          "ls {0}/train/checkpoints/model-$((at + 3)).safetensors",
                          run));
  CAPTURE(resumed.err);
  CHECK(resumed.exit_code == 0);
}

}  // namespace machines_test
}  // namespace stepop
