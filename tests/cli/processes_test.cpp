// Trainings in several processes, by the real program.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/digits_run.h"
#include "tests/same_state.h"

namespace stepop {
namespace processes_test {

/// Batches that neither 2 nor 3 divide, the last one of an epoch with a single example.
constexpr const char* kTiny = R"(
model: !replace {class: MLP, inputs: 64, hidden: [16]}
datasets:
  train: !replace {class: Synthetic, size: 61, shape: [1, 8, 8]}
  validation: !replace {class: Synthetic, size: 41, shape: [1, 8, 8], seed: 1}
batch_size: 10
test_batch_size: 8
num_epochs: 2
optimizer: !replace {class: SGD, lr: 0.1, momentum: 0.9}
checkpoints: !remove
log_freq: 1
num_threads: 1
)";

/// The lines of the metrics of the only run, without what is of a machine.
std::vector<nlohmann::json> metrics_of(const ScratchFolder& folder) {
  std::vector<nlohmann::json> rows;
  for (const auto& line :
       lines_of(read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl"))) {
    auto row = nlohmann::json::parse(line);
    for (const char* key :
         {"time", "runtime/data_wait", "runtime/examples_per_second", "runtime/process_mb"}) {
      row.erase(key);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<nlohmann::json> train(const ScratchFolder& folder, int processes,
                                  const std::string& more) {
  folder.write("tiny.yaml", kTiny);
  run_well(folder,
           fmt::format("stepop -n a -b CONFIG tiny.yaml -t --processes {} {}", processes, more));
  return metrics_of(folder);
}

void check_close(const std::vector<nlohmann::json>& rows,
                 const std::vector<nlohmann::json>& expected) {
  REQUIRE(rows.size() == expected.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [key, value] : expected[i].items()) {
      CAPTURE(key);
      CAPTURE(i);
      REQUIRE(rows[i].contains(key));
      const auto wanted = value.get<double>();
      CHECK(std::abs(rows[i][key].get<double>() - wanted) <= 1e-4 * (1 + std::abs(wanted)));
    }
  }
}

TEST_CASE("two and three processes have the losses of one") {
  for (const std::string more : {"", "--accumulate 2 --optimizer/clip_norm 0.5 --ema/decay 0.9"}) {
    CAPTURE(more);
    const ScratchFolder alone;
    const auto expected = train(alone, 1, more);
    for (const int processes : {2, 3}) {
      CAPTURE(processes);
      const ScratchFolder folder;
      check_close(train(folder, processes, more), expected);
    }
  }
}

TEST_CASE("two processes that stop and resume end with the bits of those that did not") {
  const ScratchFolder whole;
  train(whole, 2, "");
  const ScratchFolder parts;
  train(parts, 2, "--stop_at 5");
  // As many as it began with.
  run_well(parts, fmt::format("stepop -p {} -t --stop_at null", only_run(parts)));
  CHECK(differences(state_after(parts, 14), state_after(whole, 14)) == "");
}

TEST_CASE(
    "metrics of all steps since a log are those of one process, also after a stop in between") {
  const std::string metrics =
      "--log_freq '{every: 3}' --metrics '{f1: F1, area: AUROC, top: {class: TopK, k: 2}, p: "
      "Perplexity}' ";
  const ScratchFolder alone;
  const auto expected = train(alone, 1, metrics);
  CHECK(expected.at(1).contains("train/log_op/area"));
  for (const int processes : {2, 3}) {
    CAPTURE(processes);
    const ScratchFolder whole;
    const auto rows = train(whole, processes, metrics);
    check_close(rows, expected);
    const ScratchFolder parts;
    train(parts, processes, metrics + "--stop_at 8");
    run_well(parts, fmt::format("stepop -p {} -t --stop_at null", only_run(parts)));
    CHECK(metrics_of(parts) == rows);
    CHECK(differences(state_after(parts, 14), state_after(whole, 14)) == "");
  }
}

TEST_CASE("several processes read a config from a pipe, and from a file that a shell opened") {
  const ScratchFolder folder;
  folder.write("c.yaml",
               "iterator: Classifier\nmodel: {class: MLP, inputs: 16, hidden: [8]}\n"
               "datasets: {train: {class: Synthetic, size: 64, shape: [1, 4, 4]}}\n"
               "batch_size: 8\nnum_steps: 3\noptimizer: Adam\nlog_ops: [train/log_op]\n");
  for (const char* line : {"cat c.yaml | stepop -n a -b /dev/stdin -t --processes 2",
                           "stepop -n b -b /dev/fd/3 -t --processes 2 3< c.yaml"}) {
    CAPTURE(std::string(line));
    const auto result = run_in(folder, line);
    CHECK_MESSAGE(result.exit_code == 0, result.err);
    CHECK(result.out.find("ended: all 3 steps are done") != std::string::npos);
  }
}

TEST_CASE("stepop reproduce starts as many processes as a run had") {
  const ScratchFolder folder;
  train(folder, 2, "--num_steps 9");
  const std::string run = only_run(folder);
  run_well(folder, fmt::format("mkdir again; stepop reproduce {} >again/script; cd again && bash "
                               "script >out",
                               run));
  const std::string file = "/train/checkpoints/model-9.safetensors";
  const std::string again = folder.path(only_run(folder, "again/logs"));
  CHECK(differences(load_checkpoint(again + file).tensors,
                    load_checkpoint(folder.path(run) + file).tensors) == "");
}

TEST_CASE(
    "--profile shows what two processes wait for, and which sums lie beside the backward pass") {
  const ScratchFolder folder;
  folder.write("tiny.yaml", kTiny);
  const std::string start = "stepop -n a -b CONFIG tiny.yaml -t --processes 2 --profile ";
  const std::string small = run_well(folder, start).out;
  CHECK(small.find("\n    sums of gradients ") != std::string::npos);
  CHECK(small.find("\nwaiting for the other processes ") != std::string::npos);
  CHECK(small.find("sums of gradients over the processes") == std::string::npos);
  const std::string large = run_well(folder, start + "--model/hidden '[700, 700]'").out;
  CHECK(large.find("\n    waiting for sums of gradients ") != std::string::npos);
  CHECK(large.find("\nsums of gradients over the processes: ") != std::string::npos);
  CHECK(large.find(" % of it beside the backward pass\n") != std::string::npos);
}

TEST_CASE("an optimizer's state in parts makes the checkpoints of a whole one, for any number") {
  const std::string adam = "--optimizer '!replace {class: Adam, lr: 0.01}'";
  const ScratchFolder whole;
  train(whole, 2, adam);
  const ScratchFolder parts;
  train(parts, 2, adam + " --distributed/shard_optimizer true --stop_at 5");
  run_well(parts, fmt::format("stepop -p {} -t --processes 2 --stop_at null", only_run(parts)));
  CHECK(differences(state_after(parts, 14), state_after(whole, 14)) == "");
  const CommandResult alone =
      run_in(parts, fmt::format("OMP_NUM_THREADS=1 stepop -p {} -t --processes 1 --num_epochs 3",
                                only_run(parts)));
  CHECK(alone.exit_code == 0);
  CHECK(alone.err.find("the checkpoint is of 2 processes, and now there is one") !=
        std::string::npos);
}

TEST_CASE("a config says how many processes there are and how their threads wait, resumes too") {
  const ScratchFolder whole;
  train(whole, 2, "");
  const ScratchFolder parts;
  parts.write("tiny.yaml", kTiny);
  parts.write("more.yaml", "processes: 2\nthread_wait: sleep\n");
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(run_well(parts, "stepop -n a -b CONFIG tiny.yaml more.yaml -t --stop_at 5").out,
            "rank 1 on "));
  const std::string run = only_run(parts);
  CHECK(has(run_well(parts, fmt::format("stepop -p {} -t --stop_at null", run)).out, "rank 1 on "));
  CHECK(differences(state_after(parts, 14), state_after(whole, 14)) == "");
  CHECK(has(run_in(parts, "cat " + run + "/configs/train_*.json").out,
            "\"OMP_WAIT_POLICY\": \"passive\""));
  // The flag wins, and what is recorded is how many there were.
  const ScratchFolder one;
  one.write("tiny.yaml", kTiny);
  one.write("more.yaml", "processes: 2\n");
  const auto alone = run_well(one,
                              "unset GOMP_SPINCOUNT; stepop -n a -b CONFIG tiny.yaml more.yaml -t "
                              "--processes 1 --num_steps 1");
  CHECK_FALSE(has(alone.out, "rank 1 on "));
  CHECK(has(run_in(one, "cat " + only_run(one) + "/configs/train_*.yaml").out, "\nprocesses: 1\n"));
  CHECK(has(run_in(one, "cat " + only_run(one) + "/configs/train_*.json").out,
            "\"GOMP_SPINCOUNT\": \"300000\""));
}

}  // namespace processes_test
}  // namespace stepop
