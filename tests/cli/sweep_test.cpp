// `stepop sweep`, with the real binary.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/train/run/run_directory.h"
#include "tests/cli/digits_run.h"
#include "tests/same_state.h"

namespace stepop {
namespace sweep_test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A sweep over the digits: one epoch of a small network, but where `text` says otherwise.
void write_sweep(const ScratchFolder& folder, const std::string& text) {
  folder.write("tiny.yaml",
               fmt::format("include: [{}]\nmodel: {{hidden: [16, 16]}}\nnum_epochs: 1\n", kConfig));
  folder.write("s.yaml", "base: [tiny.yaml]\n" + text);
}

CommandResult sweep(const ScratchFolder& folder, const std::string& more = "") {
  return run_in(folder, "export OMP_NUM_THREADS=1; stepop sweep s.yaml " + more);
}

/// The folder of the run with this number.
std::string run_folder(const ScratchFolder& folder, const std::string& number) {
  for (const auto& entry : fs::directory_iterator(folder.path("logs/sweeps/s"))) {
    if (entry.path().string().ends_with("_s_" + number)) return entry.path().string();
  }
  return "";
}

std::string without_times(std::string text) {
  for (const char* unit : {" s, ", " min, "}) {
    for (size_t at = 0; (at = text.find(unit, at)) != std::string::npos;) {
      size_t begin = at;
      while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
      text.replace(begin, at - begin, "#");
      at = begin + 2;
    }
  }
  return text;
}

TEST_CASE("a sweep trains each point as a run, and its table has means over the seeds") {
  const ScratchFolder folder;
  write_sweep(folder, "grid: {optimizer/lr: [1e-5, 3e-3], seed: [0, 1]}\nover: [seed]\njobs: 2\n");
  const CommandResult result = sweep(folder);
  CAPTURE(result.out);
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  CHECK(
      result.out.starts_with("2 of 4 new runs are tried, each value once\n"
                             "sweep s: 4 runs in logs/sweeps/s, 2 at a time\n"
                             "0001 starts   optimizer/lr=1.0e-05 seed=0\n"
                             "0002 starts   optimizer/lr=1.0e-05 seed=1\n"));
  CHECK(result.out.find(", 4 of 4\n\noptimizer/lr  runs ") != std::string::npos);
  const std::string table = result.out.substr(result.out.find("\noptimizer/lr ") + 1);
  CHECK(lines_of(table)[1].find("0.003     2") != std::string::npos);  // the better one
  CHECK(sweep(folder, "--table").out == table);
  CHECK(run_in(folder, "stepop sweep logs/sweeps/s --table").out == table);

  // A run as any other, with its share of the threads, and a log of its own.
  const std::string first = run_folder(folder, "0001");
  const CommandResult runs = run_in(folder, "stepop runs logs/sweeps/s");
  CHECK(lines_of(runs.out).size() == 6);
  CHECK(runs.out.find("_s_0004  ended    23  1.0/1") != std::string::npos);
  const std::string config = RunDirectory::open(first).last_config();
  CHECK(read_bytes(config).find("num_threads: 1\n") != std::string::npos);
  CHECK(read_bytes(folder.path("logs/sweeps/s/output/0001.txt")).find("ended: ") !=
        std::string::npos);

  // The numbers, from what the runs logged.
  const Json json = Json::parse(sweep(folder, "--table --json").out);
  CHECK(json["metric"] == "validation/eval_op/accuracy/accuracy");
  std::vector<double> accuracies;
  for (const auto& run : {"0003", "0004"}) {
    for (const auto& line :
         lines_of(read_bytes(run_folder(folder, run) + "/train/metrics.jsonl"))) {
      const Json values = Json::parse(line);
      if (values.contains("validation/eval_op/accuracy/accuracy"))
        accuracies.push_back(values["validation/eval_op/accuracy/accuracy"]);
    }
  }
  REQUIRE(accuracies.size() == 2);
  CHECK(json["table"][0]["values"]["optimizer/lr"] == 0.003);
  CHECK(json["table"][0]["best"].get<double>() ==
        doctest::Approx((accuracies[0] + accuracies[1]) / 2));
  CHECK(json["table"][0]["best_sd"].get<double>() ==
        doctest::Approx(std::abs(accuracies[0] - accuracies[1]) / std::sqrt(2)));
  CHECK(json["runs"].size() == 4);

  // The same command again starts nothing; a longer file adds runs.
  const CommandResult again = sweep(folder);
  CHECK(again.out ==
        "sweep s: 4 runs in logs/sweeps/s, 2 at a time\n4 of 4 runs have ended before\n\n" + table);
  write_sweep(folder,
              "grid: {seed: [0, 1], optimizer/lr: [1e-5, 1e-3, 3e-3]}\nover: [seed]\njobs: 1\n");
  const CommandResult more = sweep(folder, "--json");
  CHECK(without_times(more.err).starts_with(
      "1 of 2 new runs is tried, each value once\n"
      "sweep s: 6 runs in logs/sweeps/s, 1 at a time\n4 of 6 runs have ended before\n"
      "0005 starts   seed=0 optimizer/lr=0.001\n0005 ended    best "));
  CHECK(Json::parse(more.out)["table"].size() == 3);

  // What is there stays what it is.
  write_sweep(folder, "grid: {optimizer/lr: [1e-5, 1e-3], seed: [0, 1]}\n");
  CHECK(
      sweep(folder).err ==
      "stepop: logs/sweeps/s has a plan, and run 0003 of it (optimizer/lr=0.003 seed=0) is not in "
      "the sweep file any more. A sweep that is there can only get more runs: give this one "
      "another name, or restore what it was\n");
  write_sweep(folder, "grid: {seed: [0, 1], optimizer/lr: [1e-5, 1e-3, 3e-3]}\n");
  folder.write("tiny.yaml", read_bytes(folder.path("tiny.yaml")) + "batch_size: 32\n");
  CHECK(sweep(folder).err ==
        "stepop: logs/sweeps/s has a plan, and run 0001 of it (optimizer/lr=1.0e-05 seed=0) has "
        "another config now:\n  batch_size: 64 -> 32\nA sweep that is there can only get more "
        "runs: give this one another name, or restore what it was\n");
}

TEST_CASE("sweep --keys shows the keys that the README has, and no others are read") {
  const ScratchFolder folder;
  const CommandResult result = run_in(folder, "stepop sweep --keys");
  CHECK(result.exit_code == 0);
  const auto lines = lines_of(result.out);
  CHECK(lines[0].starts_with("key            type          default "));
  CHECK(lines[1].starts_with("base           text or list  (must be given) "));
  std::string table;
  for (const auto& line :
       lines_of(read_bytes(STEPOP_SOURCE_DIR "/runtime/tools/sweep/README.md"))) {
    if (line.starts_with("| `")) table += line.substr(0, line.find(" |", 1)) + "\n";
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string key = lines[i].substr(0, lines[i].find(' '));
    CAPTURE(key);
    CHECK(table.find("`" + key + "`") != std::string::npos);
  }
  CHECK(lines.size() == 12);
  CHECK(std::ranges::count(table, '`') == 2 * 11);
  CHECK(run_in(folder, "stepop sweep").err ==
        "stepop: stepop sweep: nothing given; give sweep.yaml, or the folder of a sweep, "
        "logs/sweeps/<name>\n");
}

TEST_CASE("a run that fails fails alone, and is in the table with its error") {
  const ScratchFolder folder;
  write_sweep(folder, "grid: {optimizer/lr: [1e-3, 1e30, 2e-3]}\nover: [optimizer/lr]\n");
  const CommandResult result = sweep(folder);
  CAPTURE(result.out);
  CHECK(result.exit_code == 1);
  CHECK(result.err ==
        "stepop: 1 of 3 runs failed; the same command tries them again:  " STEPOP_BINARY_DIR
        "/stepop sweep s.yaml\n");
  CHECK(result.out.find("\n0002 failed   ") != std::string::npos);
  CHECK(result.out.find("; all of its output: logs/sweeps/s/output/0002.txt\n") !=
        std::string::npos);
  CHECK(result.out.find(", 2 of 3\n\nruns ") != std::string::npos);
  CHECK(result.out.find("  1 failed\n") != std::string::npos);
  const Json json = Json::parse(sweep(folder, "--table --json").out);
  CHECK(json["table"][0]["ended"] == 2);
  CHECK(json["runs"][1]["state"] == "failed");
  CHECK(json["runs"][1]["error"].get<std::string>().find("nan in the loss") != std::string::npos);
  CHECK(json["runs"][2]["state"] == "ended");
}

TEST_CASE("a sweep that is killed goes on with the same bits, and two at once are refused") {
  const ScratchFolder folder;
  write_sweep(folder,
              "list: [{num_steps: 600}, {num_steps: 5}]\ngrid: {eval_hook/freq: [100000]}\n");
  const CommandResult killed = run_in(
      folder,
      kUntil +
          std::string("export OMP_NUM_THREADS=1\n"
                      "stepop sweep s.yaml --jobs 1 >first 2>&1 & sweep=$!\n"
                      "until_ok 'ls logs/sweeps/s/*_s_0001/train/checkpoints/model-46.*'\n"
                      "stepop sweep s.yaml; echo $?\n"
                      "pid=$(grep -o '\"pid\":[0-9]*' logs/sweeps/s/process.json | cut -d: -f2)\n"
                      "kill -9 $pid; wait $sweep\n"
                      "stepop sweep s.yaml >again 2>&1; echo $?\n"));
  const std::string again = read_bytes(folder.path("again"));
  CAPTURE(read_bytes(folder.path("first")));
  CAPTURE(again);
  CHECK(killed.out == "2\n0\n");
  CHECK(killed.err.find("stepop: logs/sweeps/s/process.json: this sweep is running: process ") !=
        std::string::npos);
  CHECK(killed.err.find("`stepop sweep ... --table` shows how far it is\n") != std::string::npos);
  CHECK(again.find("0001 resumes  num_steps=600 eval_hook/freq=100000\n") != std::string::npos);
  CHECK(again.find("0002 starts   num_steps=5 eval_hook/freq=100000\n") != std::string::npos);
  CHECK(again.find(", 2 of 2\n") != std::string::npos);

  const ScratchFolder whole;
  write_sweep(whole, "grid: {a: [1]}\n");
  run_well(whole, "stepop -n a -b tiny.yaml -t --num_steps 600 --eval_hook/freq 100000");
  const std::string checkpoint = "/train/checkpoints/" + checkpoint_name(600);
  CHECK(differences(load_checkpoint(run_folder(folder, "0001") + checkpoint).tensors,
                    state_after(whole, 600)) == "");
}

TEST_CASE("a signal lets the runs save, says how to go on, and is the status") {
  const ScratchFolder folder;
  write_sweep(folder, "grid: {num_steps: [100000], eval_hook/freq: [100000], seed: [0, 1]}\n");
  const CommandResult stopped =
      run_in(folder,
             kUntil + std::string("export OMP_NUM_THREADS=1\n"
                                  "stepop sweep s.yaml --jobs 2 & sweep=$!\n"
                                  "for run in 1 2; do until_ok \"ls "
                                  "logs/sweeps/s/*_s_000$run/train/checkpoints/model-23.*\"; done\n"
                                  "kill -TERM $(grep -o '\"pid\":[0-9]*' "
                                  "logs/sweeps/s/process.json | cut -d: -f2)\n"
                                  "wait $sweep\n"));
  CAPTURE(stopped.out);
  CHECK(stopped.exit_code == 128 + 15);
  CHECK(stopped.out.find("SIGTERM arrived: 2 runs save and end\n") != std::string::npos);
  CHECK(stopped.out.find("0001 stopped  and saved\n") != std::string::npos);
  CHECK(
      stopped.out.ends_with("resume with:  " STEPOP_BINARY_DIR "/stepop sweep s.yaml --jobs 2\n"));
  const Json json = Json::parse(sweep(folder, "--table --json").out);
  CHECK(json["runs"][0]["state"] == "stopped");
  CHECK(json["runs"][1]["state"] == "stopped");
  CHECK(json["runs"][1]["error"] == "");
}

TEST_CASE("each run of a sweep sees one GPU, and a launcher's words come before its command") {
  const ScratchFolder folder;
  write_sweep(folder,
              "grid: {seed: [0, 1, 2, 3], hooks: [{seen: {class: RunCommand, command: \"echo "
              "$CUDA_VISIBLE_DEVICES $MARK $OMP_NUM_THREADS >> seen; sleep 1\"}}]}\n");
  folder.write("launcher", "#!/bin/bash\nexport MARK=launched\nexec \"$@\"\n");
  fs::permissions(folder.path("launcher"), fs::perms::owner_all);
  const CommandResult result = sweep(folder, "--gpus 5,GPU-7 --launch './launcher' | cat");
  CAPTURE(result.out);
  CHECK(result.err == "");
  CHECK(result.out.find(" 2 at a time\n") != std::string::npos);
  const std::vector<std::string> seen = lines_of(read_bytes(folder.path("seen")));
  CHECK(std::ranges::count(seen, "5 launched 1") == 2);
  CHECK(std::ranges::count(seen, "GPU-7 launched 1") == 2);
  CHECK(sweep(folder, "--gpus 0,,1").err ==
        "stepop: --gpus 0,,1: expected numbers of GPUs, such as 0,1,2,3\n");
}

TEST_CASE("mistakes are found before anything runs, and leave nothing behind") {
  const ScratchFolder folder;
  const auto error = [&](const std::string& text) {
    write_sweep(folder, text);
    const CommandResult result = sweep(folder);
    CHECK(result.exit_code == 2);
    CHECK_FALSE(fs::exists(folder.path("logs/sweeps/s")));
    return result.err;
  };
  CHECK(error("grid: {optimiser/lr: [1e-3]}\n") ==
        "stepop: s.yaml: with optimiser/lr=0.001: unknown key \"optimiser\": did you mean "
        "\"optimizer\"?\n(--allow-unknown makes this a warning)\n");
  CHECK(error("grid: {batch_size: [16, fast]}\n") ==
        "stepop: s.yaml: with batch_size=fast: batch_size: expected a whole number, found "
        "\"fast\"\n");
  CHECK(error("grid: {seed/x: [1]}\n") ==
        "stepop: s.yaml: with seed/x=1: s.yaml:2: --seed/x: cannot set a key in 1, given "
        "at " STEPOP_SOURCE_DIR "/configs/digits.yaml:21\n");
  CHECK(sweep(folder, "--jobs 0").err == "stepop: --jobs 0: expected a number from 1 to 256\n");
  CHECK(sweep(folder, "--table").err ==
        "stepop: stepop sweep: s.yaml: it has not begun: there is no logs/sweeps/s\n");
  CHECK(run_in(folder, "stepop sweep none.yaml").err ==
        "stepop: stepop sweep: none.yaml: no such file; give sweep.yaml, or the folder of a sweep, "
        "logs/sweeps/<name>\n");
  CHECK(run_in(folder, "stepop sweep .").err ==
        "stepop: stepop sweep: .: no plan.yaml in it; give sweep.yaml, or the folder of a sweep, "
        "logs/sweeps/<name>\n");
  CHECK(sweep(folder, "--seed 3")
            .err.starts_with("stepop: stepop sweep does not take --seed\nstepop sweep "));
}

}  // namespace sweep_test
}  // namespace stepop
