// What several processes do when one of them fails, by the real program.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/digits_run.h"
#include "tests/cli/small_training.h"
#include "tests/runtime/distributed/together.h"
#include "tests/same_state.h"
#include "tests/small_disk.h"

namespace stepop {
namespace processes_failures_test {

const std::string kSlow = "'" STEPOP_BINARY_DIR "/stepop_slow'";

/// Each process takes 8 examples of a batch.
const std::string kConfigText =
    small_training("{class: FailingRank, dataset: {class: Synthetic, size: 64, shape: [1, 8, 8]}}");

/// Rank 1, or another one, fails with the first example of its step 6: the checks before the first
/// step take a whole batch.
CommandResult train(const ScratchFolder& folder, const std::string& how,
                    const std::string& more = "") {
  folder.write("c.yaml", kConfigText);
  return run_in(folder, fmt::format("{} -n a -b c.yaml -t --processes 2 --datasets/train/how {} "
                                    "--datasets/train/after 56 {}",
                                    kSlow, how, more));
}

/// Resumes without the failure; then the run is as one that had none.
void check_resumes(const ScratchFolder& folder) {
  const CommandResult resumed = run_in(
      folder, fmt::format("{} -p {} -t --processes 2 --datasets/train/how none --on_nan stop",
                          kSlow, only_run(folder)));
  CAPTURE(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  const ScratchFolder whole;
  REQUIRE(train(whole, "none").exit_code == 0);
  CHECK(differences(state_after(folder, 12), state_after(whole, 12)) == "");
}

TEST_CASE("what one process throws ends all, with its rank and its words; the run resumes") {
  const ScratchFolder folder;
  const CommandResult result = train(folder, "throw");
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(has(result.err, "stepop: rank 1 on "));
  CHECK(has(result.err, "its disk is broken"));
  CHECK(has(result.err, fmt::format("stepop_slow -p {} -t", only_run(folder))));
  CHECK(!has(result.err, "frame #"));
  const std::string log = read_bytes(folder.path(only_run(folder)) + "/train/rank-1.log");
  CHECK(has(log, "its disk is broken"));
  check_resumes(folder);
}

TEST_CASE("a process that is killed is named, whichever it is; the run resumes") {
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    const ScratchFolder folder;
    const CommandResult result =
        train(folder, "kill", fmt::format("--datasets/train/rank {}", rank));
    CAPTURE(result.err);
    CHECK(result.exit_code == 128 + 9);
    CHECK(has(result.err, fmt::format("stepop: rank {}, process ", rank)));
    CHECK(has(result.err, "was ended by SIGKILL"));
    if (rank == 1) {
      CHECK(has(result.err, "stepop: rank 1 on "));
      CHECK(has(result.err, " is gone"));
    }
    check_resumes(folder);
  }
}

TEST_CASE("a NaN in one process is found by all in the same step") {
  const ScratchFolder stopped;
  const CommandResult stop = train(stopped, "nan");
  CAPTURE(stop.err);
  CHECK(stop.exit_code == 1);
  CHECK(has(stop.err, "nan in the loss of rank 1 on "));
  CHECK(has(stop.err, "in step 6"));
  const ScratchFolder skipped;
  const CommandResult skip = train(skipped, "nan", "--on_nan skip");
  CAPTURE(skip.err);
  CHECK(skip.exit_code == 0);
  CHECK(has(skip.err + skip.out, "the update was left out"));
}

TEST_CASE("a process that hangs is named after the time that the config gives") {
  const ScratchFolder folder;
  const CommandResult result = train(folder, "hang");
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(has(result.err, " seconds for: rank 1 on "));
  CHECK(has(result.err, "in step 6"));
}

TEST_CASE("an iterator that does other things in one process is told what, and the run is whole") {
  struct Mistake {
    std::string how;
    std::vector<std::string> texts;  ///< One of them is said.
  };
  const std::vector<Mistake> mistakes = {
      {"no update", {"the processes do different things in step 6", " seconds for: rank "}},
      {"two updates", {"the processes do different things in step ", " seconds for: rank "}},
      {"weights", {"is not the same in rank 1 on "}},
      {"log", {"what is logged in this step is not the same in all processes"}},
  };
  for (const auto& [how, texts] : mistakes) {
    CAPTURE(how);
    const ScratchFolder folder;
    const CommandResult result =
        train(folder, "none", fmt::format("--iterator UnequalRanks --how '{}'", how));
    CAPTURE(result.err);
    CHECK(result.exit_code == (how == "log" ? 2 : 1));
    CHECK(std::ranges::any_of(texts, [&](const auto& text) { return has(result.err, text); }));
    CHECK(!has(result.err, "frame #"));
    CHECK(has(result.err, fmt::format("stepop_slow -p {} -t", only_run(folder))));
    CHECK(load_checkpoint(folder.path(only_run(folder)) + "/train/checkpoints/model-5.safetensors")
              .progress.global_step == 5);
  }
}

TEST_CASE("SIGTERM to the parent saves and ends all; another number of processes resumes") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfigText);
  const CommandResult result = run_in(
      folder, std::string(kUntil) +
                  fmt::format("{} -n a -b c.yaml -t --processes 2 --num_steps 100000 > o.txt & "
                              "until_ok 'ls logs/*/train/checkpoints/model-5.safetensors'; "
                              "kill -TERM $!; wait $!",
                              kSlow));
  CAPTURE(result.err);
  CHECK(result.exit_code == 128 + 15);
  CHECK(has(read_bytes(folder.path("o.txt")), "ended: SIGTERM arrived"));
  const std::string run = only_run(folder);
  const CommandResult resumed = run_in(
      folder, fmt::format("at=$(readlink {0}/train/checkpoints/latest.safetensors | tr -dc 0-9); "
                          "{1} -p {0} -t --processes 3 --num_steps $((at + 3))",
                          run, kSlow));
  CAPTURE(resumed.out);
  CHECK(resumed.exit_code == 0);
  CHECK(has(resumed.out + resumed.err, "of 2 processes, and now there are 3"));
}

TEST_CASE("a full disk under rank 0 ends all; with room the run resumes to the same bits") {
  on_small_disk(2 << 20, [](SmallDisk& disk) {
    const ScratchFolder folder;
    folder.write("c.yaml", kConfigText);
    const std::string words = fmt::format(
        "cd '{}'; {} -n a -b '{}' -t --processes 2 "
        "--num_steps 100000 --checkpoints '{{keep_last: 2}}'",
        disk / "", kSlow, folder.path("c.yaml"));
    const CommandResult result = run_in(
        folder, std::string(kUntil) + "(until_ok 'ls \"" + (disk / "logs\"/*/train/checkpoints/") +
                    "latest.safetensors'; cat /dev/zero > '" + (disk / "others.bin") + "') & " +
                    words + "; code=$?; wait; exit $code");
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(has(result.err, "No space left on device"));
    CHECK(!has(result.err, "frame #"));
    std::filesystem::remove(disk / "others.bin");
    const CommandResult resumed = run_in(
        folder,
        fmt::format(
            "cd '{}'; at=$(readlink logs/*/train/checkpoints/latest.safetensors | tr -dc 0-9); "
            "{} -p logs/*_a -t --num_steps $((at + 3)) >&2 && echo $((at + 3))",
            disk / "", kSlow));
    CAPTURE(resumed.err);
    REQUIRE(resumed.exit_code == 0);
    const int steps = std::stoi(resumed.out);
    CHECK(steps > 3);
    const std::string run = std::filesystem::directory_iterator(disk / "logs")->path();
    const std::string file = fmt::format("/train/checkpoints/model-{}.safetensors", steps);
    const ScratchFolder whole;
    REQUIRE(train(whole, "none", fmt::format("--num_steps {}", steps)).exit_code == 0);
    CHECK(differences(load_checkpoint(run + file).tensors, state_after(whole, steps)) == "");
  });
}

TEST_CASE("processes that were started with other words, or on a port that is taken, are refused") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfigText);
  const int port = free_test_port();
  const auto start = [&](int rank, const std::string& more) {
    return fmt::format(
        "RANK={} WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={} {} -n a -b c.yaml "
        "-t {}",
        rank, port, kSlow, more);
  };
  const CommandResult words =
      run_in(folder, start(1, "--seed 2") + " 2>/dev/null & " + start(0, "") + "; wait");
  CAPTURE(words.err);
  CHECK(words.exit_code == 0);  // of `wait`
  CHECK(has(words.err, "the command line is not the same in all processes"));
  CHECK(has(words.err, "--seed 2"));
  CHECK(only_run(folder) == "");
  const CommandResult taken = run_in(
      folder, fmt::format("python3 -c 'import socket, time; s = socket.socket(); "
                          "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
                          "s.bind((\"\", {})); s.listen(); print(1, flush=True); time.sleep(60)' "
                          "> listens & for ((i = 0; i < 6000; ++i)); do [ -s listens ] && break; "
                          "sleep 0.01; done; {}; e=$?; kill %1; exit $e",
                          port, start(0, "")));
  CAPTURE(taken.err);
  CHECK(taken.exit_code == 1);
  CHECK(has(taken.err, fmt::format("cannot listen on port {}", port)));
}

TEST_CASE("a process says for whom it waits") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfigText);
  const int port = free_test_port();
  const auto start = [&](int rank, int at) {
    return fmt::format(
        "RANK={0} LOCAL_RANK=0 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT={1} {2} -n a -b "
        "c.yaml -t 2>err{0} & ",
        rank, at, kSlow);
  };
  const CommandResult result = run_in(
      folder, std::string(kUntil) + start(0, port) + start(2, free_test_port()) +
                  "until_ok 'grep -q waiting err0 && grep -q waiting err2'; kill -TERM $(jobs -p)");
  CHECK(result.exit_code == 0);
  CHECK(read_bytes(folder.path("err0"))
            .starts_with("stepop: waiting for rank 1, 2 of 3 processes\n"));
  CHECK(read_bytes(folder.path("err2"))
            .starts_with("stepop: waiting for rank 0 of 3 processes, at 127.0.0.1, port "));
}

TEST_CASE("several processes write the bytes of one into the outputs file") {
  std::string expected;
  for (const int processes : {1, 2, 3}) {
    CAPTURE(processes);
    const ScratchFolder folder;
    folder.write("c.yaml", kConfigText);
    // An evaluation of the weights that a training begins with: those are the same to the bit.
    run_well(folder, fmt::format("{} -n a -b c.yaml -t --processes {} --num_steps 1 "
                                 "--test_batch_size 3 --optimizer/lr 1e-30",
                                 kSlow, processes));
    std::string bytes;
    for (const auto& file : files_below(folder.path(only_run(folder)))) {
      if (file.ends_with("outputs.h5")) {
        bytes = read_bytes(folder.path(only_run(folder)) + "/" + file);
      }
    }
    REQUIRE(!bytes.empty());
    if (processes == 1) expected = bytes;
    CHECK(bytes == expected);
  }
}

}  // namespace processes_failures_test
}  // namespace stepop
