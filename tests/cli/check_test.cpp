// --check: the real binary builds all that a training needs, runs every op, and leaves nothing.

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/digits_run.h"

namespace stepop {
namespace check_test {

namespace fs = std::filesystem;

/// Every file below `folder` with its bytes.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const auto& name : files_below(folder)) all[name] = read_bytes(folder + "/" + name);
  return all;
}

/// Whether a command left nothing but what the shell did.
bool is_untouched(const ScratchFolder& folder) {
  const auto files = files_below(folder.path());
  return files == std::vector<std::string>({".err", ".out", ".script"});
}

TEST_CASE("--check shows modules, batches and ops of the digits, and writes nothing") {
  const ScratchFolder folder;
  const CommandResult result = run_well(folder, "stepop -b CONFIG -t --check");
  CHECK(is_untouched(folder));
  // The counts are those of LeNet's layers: 6 (1 5 5 + 1), 16 (6 5 5 + 1), 120 (64 + 1), ....
  for (const std::string part :
       {"device    cpu, 1 thread, oneDNN on\nseed      1\n",
        "network  class   trainable  parameters   memory\n"
        "model    LeNet      21,386      21,386  85.5 kB\n"
        "  conv1  Conv2d        156         156    624 B\n"
        "  conv2  Conv2d      2,416       2,416   9.7 kB\n"
        "  fc1    Linear      7,800       7,800  31.2 kB\n"
        "  fc2    Linear     10,164      10,164  40.7 kB\n"
        "  fc3    Linear        850         850   3.4 kB\n",
        "training on train: 64 of 1,442 examples\n",
        "  image  float32 [64, 1, 8, 8]  cpu     16.4 kB\n", "\n  train_op  ", "\n  step_op   ",
        "logs on validation: 64 of 355 examples\n",
        "evaluation on validation: 64 of 355 examples\n",
        "  eval_op      logits  output  float32 [64, 10]\n",
        // Adam keeps two tensors a parameter and one number for each of ten; the update its last
        // rate.
        "memory    networks 85.5 kB, state of optimizers 171.2 kB; at most "}) {
    CAPTURE(part);
    CHECK(result.out.find(part) != std::string::npos);
  }
  CHECK(result.out.ends_with(
      "\ncallbacks not run: they need a whole evaluation, and -d makes a short "
      "one\nall ops that the config calls were run: ok\n"));
  CHECK_FALSE(has_control_characters(result.out));
}

TEST_CASE("--check on a run leaves every byte of it, in a training and in an evaluation") {
  const auto before = contents(whole_run().root);
  const ScratchFolder folder;
  const std::string more = " --num_epochs 30 --check";
  const CommandResult training = run_well(folder, "stepop -p " + whole_run().root + " -t" + more);
  CHECK(training.out.starts_with("weights   " + whole_run().checkpoint + "\n"));
  CHECK(training.out.find("training on train: ") != std::string::npos);
  const CommandResult evaluation = run_well(folder, "stepop -p " + whole_run().root + more,
                                            ": num_epochs: only a training reads this key");
  CHECK(evaluation.out.find("evaluation on validation: ") != std::string::npos);
  CHECK(evaluation.out.find("training on train: ") == std::string::npos);
  CHECK((contents(whole_run().root) == before));
  CHECK(is_untouched(folder));
}

TEST_CASE("what --check finds is told, and exits, as in a training") {
  const ScratchFolder folder;
  const std::string start = std::string("stepop -b ") + kConfig;
  const auto same = [&](const std::string& flags) {
    const CommandResult checked = run_in(folder, start + flags + " -t --check");
    CHECK(is_untouched(folder));
    const CommandResult trained = run_in(folder, start + flags + " -t");
    CHECK(is_untouched(folder));
    CHECK(checked.err == trained.err);
    CHECK(checked.exit_code == trained.exit_code);
    return checked;
  };
  CHECK(same(" --batch_sise 3").exit_code == 2);
  CHECK(same(" --log_ops '[train/no_op]'").exit_code == 2);
  CHECK(run_in(folder, start + " --check").err ==
        "stepop: nothing to evaluate: give a run with -p, a checkpoint with -c, or weights with "
        "--init_from; -t trains\n");
  const CommandResult nan = run_in(folder, start + " -t --check --optimizer/lr 1e30");
  CHECK(nan.exit_code == 1);
  CHECK(nan.err.find(": the update was not made.") != std::string::npos);
  CHECK(nan.out.find("ok\n") == std::string::npos);
  CHECK(is_untouched(folder));
}

TEST_CASE("--check of an iterator that keeps what is not tracked ends with status 3") {
  const ScratchFolder folder;
  folder.write("a.yaml",
               "iterator: QuietIterator\nmodel: {class: MLP, inputs: 4}\noptimizer: SGD\n"
               "datasets: {train: {class: Synthetic, size: 64, shape: [1, 2, 2]}}\n"
               "batch_size: 8\nnum_steps: 8\nnum_threads: 1\nn_data_processes: 0\n");
  const std::string check = "'" STEPOP_BINARY_DIR "/stepop_slow' -b a.yaml -t --check";
  CHECK(run_in(folder, check).exit_code == 0);
  const CommandResult result = run_in(folder, check + " --forgets true");
  CHECK(result.exit_code == 3);
  CHECK(result.err.find("warning: two training steps, repeated from the same state, gave different "
                        "results in ") != std::string::npos);
}

}  // namespace check_test
}  // namespace stepop
