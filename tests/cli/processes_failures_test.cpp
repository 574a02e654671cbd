// What several processes do when one of them fails, by the real program.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/digits_run.h"
#include "tests/cli/small_training.h"
#include "tests/runtime/train/distributed/together.h"
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

/// Resumes without the failure; then the run is as a run that had none.
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

TEST_CASE("NCCL without a GPU is refused, with what is missing") {
  const ScratchFolder folder;
  const CommandResult result = train(folder, "none", "--device cpu --distributed/backend nccl");
  CAPTURE(result.err);
  CHECK(result.exit_code == 2);
  const std::string why = "stepop: command line: distributed/backend: nccl ";
  CHECK((has(result.err, why + "needs a LibTorch with CUDA, and this one has none; use gloo") ||
         has(result.err, why + "is not in this build, which did not find the headers of NCCL and "
                               "CUDA (see cmake/README.md); use gloo") ||
         has(result.err, why + "carries tensors of cuda, and the device is cpu; use gloo")));
  CHECK(only_run(folder) == "");
}

TEST_CASE("a process that hangs is named after the time that the config gives") {
  const ScratchFolder folder;
  const CommandResult result = train(folder, "hang");
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(has(result.err, " seconds for: rank 1 on "));
  CHECK(has(result.err, "in step 6"));
}

TEST_CASE("a rank 0 that is stopped is named by another one, and all end") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfigText);
  // The parent's children are ranks 0, 1 and 2.
  const CommandResult result = run_in(
      folder, std::string(kUntil) +
                  fmt::format("{} -n a -b c.yaml -t --processes 3 --num_steps 1000000 "
                              "--ckpt_freq 50 --distributed/timeout 2s > o.txt & parent=$!; "
                              "until_ok 'ls logs/*/train/checkpoints/model-50.safetensors'; "
                              "kill -STOP $(pgrep -P $parent | sort -n | head -1); wait $parent",
                              kSlow));
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(has(result.err, "stepop: rank 1 on "));
  CHECK(has(result.err, ": rank 0 on "));
  CHECK(has(result.err, " did not answer for "));
  CHECK(has(result.err, "stepop: rank 0, process "));
  CHECK(has(result.err, "was ended: it was stopped, and another one had failed"));
  CHECK(!has(result.err, "seconds after another one failed"));
}

TEST_CASE("a process that is stopped before all have met ends all after the config's time") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfigText);
  const CommandResult result = run_in(
      folder,
      std::string(kUntil) +
          fmt::format("{} -n a -b c.yaml -t --processes 2 --distributed/timeout 2s > o.txt & "
                      "parent=$!; until_ok 'pgrep -P $parent'; "
                      "kill -STOP $(pgrep -P $parent | sort -n | tail -1); wait $parent",
                      kSlow));
  CAPTURE(result.err);
  CHECK(result.exit_code == 128 + 9);
  CHECK(has(result.err, "was ended: it was stopped for 2 seconds before all were there"));
  CHECK(only_run(folder) == "");
}

TEST_CASE("a process that is killed before all have met ends the others") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfigText);
  const CommandResult result = run_in(
      folder, std::string(kUntil) +
                  fmt::format("{} -n a -b c.yaml -t --processes 2 > o.txt & parent=$!; "
                              "until_ok 'pgrep -P $parent'; "
                              "kill -KILL $(pgrep -P $parent | sort -n | tail -1); wait $parent",
                              kSlow));
  CAPTURE(result.err);
  CHECK(result.exit_code == 128 + 9);
  CHECK(has(result.err, "was ended by SIGKILL"));
  CHECK(has(result.err, "was ended: another one had failed before all were there"));
  CHECK(only_run(folder) == "");
}

TEST_CASE("on one machine nothing listens to the network, and a stranger sets no failure") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfigText);
  folder.write("ports.py", R"(
import os, re, subprocess, sys
from datetime import timedelta
parent = sys.argv[1]
ranks = subprocess.check_output(["pgrep", "-P", parent], text=True).split()
own = set()
for rank in ranks:
    for file in os.listdir(f"/proc/{rank}/fd"):
        try:
            own.add(os.readlink(f"/proc/{rank}/fd/{file}"))
        except OSError:
            pass
for table in ("tcp", "tcp6"):
    for line in open("/proc/net/" + table).readlines()[1:]:
        field = line.split()
        if field[3] == "0A" and f"socket:[{field[9]}]" in own:
            print("listens", field[1].split(":")[0])
environment = open(f"/proc/{ranks[0]}/environ", "rb").read().decode().split("\0")
port = int(next(each for each in environment if each.startswith("MASTER_PORT=")).split("=")[1])
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=20))
for key in ("stepop//failure", "stepop/failure", "stepop///failure", "failure"):
    store.set(key, '{"text": "all steps are done", "exit_code": 0, "rank": 0}')
print("set")
)");
  const CommandResult result = run_in(
      folder,
      std::string(kUntil) +
          "newest() { ls logs/*/train/checkpoints | tr -dc '0-9\n' | sort -n | tail -1; }; " +
          fmt::format("{} -n a -b c.yaml -t --processes 2 --num_steps 1000000 "
                      "--ckpt_freq 50 > o.txt & parent=$!; "
                      "until_ok 'ls logs/*/train/checkpoints/model-50.safetensors'; "
                      "'{}' ports.py $parent; at=$(newest); "
                      "until_ok '[ $(newest) -gt $((at + 100)) ]'; "
                      "kill -TERM $parent; wait $parent",
                      kSlow, STEPOP_SOURCE_DIR "/.venv/bin/python3"));
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.exit_code == 128 + 15);
  CHECK(has(result.out, "set\n"));
  int listening = 0;
  for (const auto& line : lines_of(result.out)) {
    if (!line.starts_with("listens ")) continue;
    ++listening;
    CHECK(line == "listens 0100007F");  // 127.0.0.1
  }
  CHECK(listening >= 3);
}

TEST_CASE("what is trained by hand is refused with several processes") {
  const ScratchFolder folder;
  const CommandResult result = train(folder, "none", "--iterator UnequalRanks --how 'by hand'");
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(has(result.err,
            "context.train_by_hand({\"model\"}) with 2 processes: nothing sums the gradients of an "
            "optimizer that is not an Update, so each process would train a network of its own. "
            "Train \"model\" by context.update(), or in one process: --processes 1"));
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

TEST_CASE("what is still to be logged is shared out when the number of processes changes") {
  // The op is due in step 5, logs in 1, 3, 6.
  const std::string start = kSlow +
                            " -n a -b c.yaml -t --iterator UnequalRanks --datasets/train/after 56 "
                            "--log_freq 3 --train_ops '[{op: train/train_op, when: 5}]' "
                            "--num_steps 7 --stop_at 5 --processes ";
  const auto mean_of_six = [](const ScratchFolder& folder) {
    const std::string lines = read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl");
    const std::string key = "\"train/train_op/mean\":";
    REQUIRE(lines.find(key) != std::string::npos);
    CHECK(lines.find(key) == lines.rfind(key));
    return std::stod(lines.substr(lines.find(key) + key.size()));
  };
  double expected = 0;
  for (const auto& [before, after] : {std::pair{1, 1}, {1, 2}, {2, 3}, {2, 1}}) {
    CAPTURE(before);
    CAPTURE(after);
    const ScratchFolder folder;
    folder.write("c.yaml", kConfigText);
    run_well(folder, start + std::to_string(before));
    run_well(
        folder,
        fmt::format("{} -p {} -t --processes {} --stop_at null", kSlow, only_run(folder), after),
        ", and now there ");
    if (before == after) expected = mean_of_six(folder);
    CHECK(mean_of_six(folder) == doctest::Approx(expected).epsilon(1e-5));
  }
}

TEST_CASE("an error in a log op of one process is said as it is, and its step is saved") {
  const ScratchFolder folder;
  const CommandResult result =
      train(folder, "none", "--iterator UnequalRanks --how 'log throws' --ckpt_freq 100");
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(has(result.err, "stepop: rank 1 on "));
  CHECK(has(result.err, "train/log_op: no such curve"));
  CHECK(!has(result.err, "what is logged in this step"));
  CHECK(load_checkpoint(folder.path(only_run(folder)) + "/train/checkpoints/model-7.safetensors")
            .progress.global_step == 7);
}

TEST_CASE("a forward pass in a log op leaves batch normalization the same in all processes") {
  const ScratchFolder folder;
  const CommandResult result =
      train(folder, "none",
            "--iterator UnequalRanks --how 'log passes' --log_freq 1 --model "
            "'!replace {class: NormOfPixels}'");
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
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
