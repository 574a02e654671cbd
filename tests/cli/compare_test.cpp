// `stepop compare RUN RUN ...`.

#include <doctest/doctest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/cli/command.h"

namespace stepop {
namespace compare_test {

void make_run(const ScratchFolder& folder, const std::string& name, const std::string& config,
              const std::string& metrics) {
  folder.write(name + "/configs/train_2026-11-21T10-00-00.yaml", config);
  if (!metrics.empty()) folder.write(name + "/train/metrics.jsonl", metrics);
}

TEST_CASE("what differs in the configs and the metrics side by side") {
  const ScratchFolder folder;
  make_run(folder, "one", "optimizer: {lr: 0.1}\nsame: 1\nnum_epochs: 2\n",
           "{\"step\":10,\"epoch\":1,\"validation/eval_op/loss\":0.5,\"a/b/lr\":0.1}\n"
           "{\"step\":1020,\"epoch\":2,\"validation/eval_op/loss\":0.75,\"a/b/lr\":0.01}\n");
  make_run(folder, "two", "optimizer: {lr: 0.2}\nsame: 1\nnum_epochs: 2\nema: {decay: 0.9}\n",
           "{\"step\":10,\"epoch\":1,\"validation/eval_op/loss\":\"NaN\"}\n"
           "{\"step\":20,\"epoch\":1.5,\"validation/eval_op/accuracy/accuracy\":0.5}\n");
  const CommandResult result = run_in(folder, "stepop compare one two");
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        "   run  state     step  epoch\n"
        "a  one  unknown  1,020    2.0\n"
        "b  two  unknown     20    1.5\n"
        "\n"
        "config        a    b\n"
        "optimizer/lr  0.1  0.2\n"
        "ema/decay     -    0.9\n"
        "\n"
        "metric                                best is  a last  best  at step  b last  best  at "
        "step\n"
        "validation/eval_op/loss               lowest     0.75   0.5       10     nan     -        "
        "-\n"
        "a/b/lr                                           0.01     -        -       -     -        "
        "-\n"
        "validation/eval_op/accuracy/accuracy  highest       -     -        -     0.5   0.5       "
        "20\n");
}

TEST_CASE("runs that are the same, or have logged nothing, say so") {
  const ScratchFolder folder;
  make_run(folder, "one", "a: 1\n", "");
  make_run(folder, "two", "a: 1\n", "");
  make_run(folder, "broken", "a: [\n", "");
  const CommandResult same = run_in(folder, "stepop compare one two");
  CHECK(same.out.find("\nThe configs are the same.\n\nNone of them has logged a number yet.\n") !=
        std::string::npos);
  const CommandResult broken = run_in(folder, "stepop compare one broken");
  CHECK(broken.exit_code == 0);
  CHECK(broken.err.starts_with("stepop: broken: left out of the configs: broken/configs/"));
  CHECK(broken.out.find("config") == std::string::npos);
  const CommandResult three = run_in(folder, "stepop compare one broken two");
  CHECK(three.out.find("\nThe configs are the same.\n\n") != std::string::npos);
}

TEST_CASE("code that differs is shown, though the configs are the same") {
  const ScratchFolder folder;
  for (const std::string run : {"one", "two"}) {
    make_run(folder, run, "code: [net.cpp]\n", "");
    folder.write(run + "/code/2026-11-21T10-00-00/net.cpp", "// " + run + "\n");
    folder.write(run + "/code/2026-11-21T10-00-00/sources.json", "{}");
  }
  const CommandResult result = run_in(folder, "stepop compare one two");
  CHECK(result.out.find("The configs are the same.\n\n"
                        "The code of b differs from that of a:\n"
                        "  net.cpp: 1 line added, 1 removed\n"
                        "    @ line 1\n    -// one\n    +// two\n\n") != std::string::npos);
}

TEST_CASE("folders that are no runs are told and left out, as for logs/*") {
  const ScratchFolder folder;
  make_run(folder, "logs/one", "a: 1\n", "");
  make_run(folder, "logs/two", "a: 2\n", "");
  make_run(folder, "logs/debug_runs/three", "a: 2\n", "");
  folder.write("logs/notes.txt", "");
  const CommandResult result = run_in(folder, "stepop compare logs/*");
  CHECK(result.exit_code == 0);
  CHECK(result.err ==
        "stepop: logs/debug_runs: not the folder of a run: left out\n"
        "stepop: logs/notes.txt: not the folder of a run: left out\n");
  CHECK(result.out.find("config  a  b\na       1  2\n") != std::string::npos);
}

TEST_CASE("what only evaluations without a training found is compared, too") {
  const ScratchFolder folder;
  make_run(folder, "one", "a: 1\n", "{\"step\":10,\"v/eval_op/loss\":0.5}\n");
  make_run(folder, "two", "a: 1\n", "");
  for (const char* run : {"one", "two"}) {
    const std::string root = run;
    folder.write(root + "/configs/eval_2026-11-21T10-00-00.yaml", "a: 1\n");
    folder.write(root + "/eval/2026-11-21T10-00-00_" + root + "/20/scalars.json",
                 "{\"v/eval_op/loss\": 9, \"v/eval_op/f1\": 0.25}");
  }
  const CommandResult result = run_in(folder, "stepop compare one two");
  CHECK(
      result.out.find("v/eval_op/loss  lowest      0.5   0.5       10       9     9       20\n") !=
      std::string::npos);
  CHECK(
      result.out.find("v/eval_op/f1    highest    0.25  0.25       20    0.25  0.25       20\n") !=
      std::string::npos);
}

TEST_CASE("one run alone, and what is no run, are refused") {
  const ScratchFolder folder;
  make_run(folder, "one", "a: 1\n", "");
  const auto refused = [&](const std::string& words, const std::string& message) {
    const CommandResult result = run_in(folder, "stepop compare" + words);
    CHECK(result.err == "stepop: " + message + "\n");
    CHECK(result.exit_code == 2);
  };
  CHECK(run_in(folder, "stepop compare one")
            .err.starts_with("stepop: stepop compare: too few arguments\nstepop compare logs/a "));
  refused(" one none",
          "stepop compare: none: no such folder; give the folder of a run, logs/<time>_<name>");
  const CommandResult result = run_in(folder, "stepop compare one .");
  CHECK(result.err ==
        "stepop: .: not the folder of a run: left out\n"
        "stepop: stepop compare: .: not the folder of a run: it has no configs/\n");
  CHECK(result.exit_code == 2);
}

TEST_CASE("the newest checkpoints of one step are the same, or say by how much they are not") {
  const ScratchFolder folder;
  const auto save = [&](const std::string& run, int64_t step, const State& state) {
    const std::string checkpoints = folder.path(run + "/train/checkpoints");
    std::filesystem::create_directories(checkpoints);
    Checkpoint checkpoint;
    checkpoint.tensors = state;
    checkpoint.progress.global_step = step;
    save_checkpoint(checkpoints, checkpoint);
  };
  for (const char* run : {"one", "two", "three", "four", "none"})
    make_run(folder, run, "a: 1\n", "");
  const State state = {{"model.weight", at::ones({2, 3})}, {"optimizer.step", at::full({}, 7)}};
  State other = state;
  other["model.weight"] = at::full({2, 3}, 1.25);
  save("one", 10, other);
  for (const char* run : {"one", "two"}) save(run, 1200, state);
  save("one", 1300, other);
  save("three", 1200, {{"model.weight", other["model.weight"]}, {"count", at::ones({1})}});
  save("four", 5, state);
  const CommandResult result = run_in(folder, "stepop compare none one two three four");
  CHECK(result.exit_code == 0);
  CHECK(result.out.ends_with(
      "\n\nstate of b and c at step 1,200: the same bits in all 2 tensors, weights and everything "
      "else\n"
      "state of b and d at step 1,200: 1 of 1 tensor differs, first model.weight by at most 0.25; "
      "2 "
      "tensors are in one alone\n"
      "state of b and e: there is no step at which both have a checkpoint\n"));
}

TEST_CASE("checkpoints of every type are compared as numbers, and tied weights as both") {
  const auto line_of = [](const State& a, const State& b) {
    const ScratchFolder folder;
    for (const auto& [run, state] : {std::pair("one", a), std::pair("two", b)}) {
      make_run(folder, run, "a: 1\n", "");
      Checkpoint checkpoint;
      checkpoint.tensors = state;
      checkpoint.progress.global_step = 1;
      const std::string checkpoints = folder.path(std::string(run) + "/train/checkpoints");
      std::filesystem::create_directories(checkpoints);
      save_checkpoint(checkpoints, checkpoint);
    }
    const std::string out = run_in(folder, "stepop compare one two").out;
    return out.substr(out.find(" at step 1: ") + 12);
  };
  for (const at::ScalarType type : {at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                                    at::kShort, at::kChar, at::kByte, at::kBool}) {
    CAPTURE(type);
    const bool is_bool = type == at::kBool;
    const State a = {{"a.b", at::full({3}, is_bool ? 0 : 5, type)}};
    const State b = {{"a.b", at::full({3}, is_bool ? 1 : 3, type)}};
    CHECK(line_of(a, b) ==
          fmt::format("1 of 1 tensor differs, first a.b by at most {}\n", is_bool ? 1 : 2));
    CHECK(line_of(a, a) == "the same bits in all 1 tensor, weights and everything else\n");
  }
  CHECK(line_of({{"a.b", at::ones({2})}}, {{"a.b", at::ones({2, 1})}}) ==
        "1 of 1 tensor differs, first a.b: float32 [2] and float32 [2, 1]\n");
  CHECK(line_of({{"a.b", at::ones({2})}}, {{"a.b", at::full({2}, std::nan(""))}}) ==
        "1 of 1 tensor differs, first a.b by at most nan\n");
  const at::Tensor one = at::ones({2});
  const at::Tensor other = at::full({2}, 1.5);
  CHECK(line_of({{"a.b", one}, {"a.c", one}}, {{"a.b", other}, {"a.c", other}}) ==
        "2 of 2 tensors differ, first a.b by at most 0.5\n");
}

TEST_CASE("many runs have a row each, with the keys that differ, no wider than a terminal") {
  const ScratchFolder folder;
  std::string words;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "logs/2026-11-21T10-00-" + std::to_string(10 + i) + "_run";
    words += " " + name;
    make_run(folder, name,
             "optimizer: {lr: " + std::to_string(i + 1) + "}\nmodel: {hidden: [" +
                 std::to_string(i % 3) +
                 "], dropout: 0.5, a_key_with_a_long_name: " + std::to_string(i % 2) +
                 ", another_key_with_a_long_name: " + std::to_string(i % 2) +
                 "}\ncheckpoints: {metric: v/eval_op/accuracy, mode: max}\n",
             "{\"step\":1000,\"v/eval_op/accuracy\":0." + std::to_string(10 + i) +
                 ",\"v/eval_op/loss\":0.5}\n{\"step\":2000,\"v/eval_op/accuracy\":0.125}\n");
  }
  const CommandResult result = run_in(folder, "stepop compare" + words);
  CHECK(result.err == "");
  CHECK(result.out.starts_with(
      "   run                      state     step   last   best  at step  lr  hidden/0\n"
      "a  2026-11-21T10-00-10_run  unknown  2,000  0.125  0.125    2,000  1   0\n"));
  CHECK(result.out.find("\nt  2026-11-21T10-00-29_run  unknown  2,000  0.125   0.29    1,000  20  "
                        "1\n\n   a_key_with_a_long_name  another_key_with_a_long_name\n"
                        "a  0                       0\n") != std::string::npos);
  CHECK(
      result.out.ends_with("last, best: v/eval_op/accuracy, highest is best\n"
                           "1 other number: stepop compare A B shows all numbers of two "
                           "runs\n"));
  for (size_t begin = 0; begin < result.out.size();) {
    const size_t end = result.out.find('\n', begin);
    CHECK(end - begin <= 100);
    begin = end + 1;
  }
}

}  // namespace compare_test
}  // namespace stepop
