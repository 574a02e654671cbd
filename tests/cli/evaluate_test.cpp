// Evaluations without a training, beside one or after it; with the real binary.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "eval_out/read/eval_reader.h"
#include "eval_out/read/find_evaluations.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/same_state.h"
#include "tests/without_clock.h"

namespace stepop {
namespace evaluate_test {

namespace fs = std::filesystem;

const std::string kSlow = "'" STEPOP_BINARY_DIR "/stepop_slow'";

/// A validation of 64 examples, 2 ms each; while the file `stuck_validation` is there, half a
/// minute each from the 33rd on.
constexpr const char* kConfigOfSlow = R"(
model: !replace {class: MLP, inputs: 64, hidden: [16]}
datasets:
  train: !replace {class: SlowDataset, seconds: 2e-3, dataset: {class: Synthetic, size: 64, shape: [1, 8, 8]}}
  validation: !replace {class: SlowDataset, seconds: 2e-3, stuck: stuck_validation, stuck_from: 32, dataset: {class: Synthetic, size: 64, shape: [1, 8, 8], seed: 1}}
batch_size: 8
num_threads: 1
n_data_processes: 0
ckpt_freq: 4
checkpoints: {keep_last: 1}
)";

std::vector<std::string> metrics_without_times(const std::string& run) {
  std::vector<std::string> lines;
  for (const auto& line : lines_of(read_bytes(run + "/train/metrics.jsonl"))) {
    lines.push_back(without_clock(nlohmann::ordered_json::parse(line)).dump());
  }
  return lines;
}

const std::string kMode = "checkpoints/mode: max, but by its name the lowest";

/// A training whose best checkpoint is that of step 23: the loss falls, and the best is the
/// highest.
struct Trained {
  Trained() {
    run_well(folder,
             "stepop -n a -b CONFIG -t --num_steps 69 --checkpoints "
             "'{metric: validation/eval_op/loss, mode: max, keep_last: 1, keep_best: 1}'",
             kMode);
    run = only_run(folder);
  }

  std::string path(const std::string& name) const { return folder.path(run) + "/" + name; }
  CheckpointFolder checkpoints() const { return CheckpointFolder(path("train/checkpoints")); }

  ScratchFolder folder;
  std::string run;
};

TEST_CASE("an evaluation of other data leaves what a training goes by alone: metrics, best") {
  const Trained trained;
  REQUIRE(trained.checkpoints().best() == 23);
  REQUIRE((trained.checkpoints().steps() == std::vector<int64_t>{23, 69}));
  const std::string metrics = read_bytes(trained.path("train/metrics.jsonl"));
  const auto last_line = [&](const std::string& words) {
    const auto lines = lines_of(run_well(trained.folder, "stepop " + words).out);
    return words.starts_with("runs") ? lines.at(1).substr(0, lines.at(1).rfind("  "))
                                     : lines.back();
  };
  const std::string listed = last_line("runs");
  const std::string compared = last_line("compare " + trained.run + " " + trained.run);

  // On noise with random classes the loss is higher than any that the training met.
  const CommandResult evaluated =
      run_well(trained.folder,
               "stepop -p " + trained.run +
                   " --datasets/validation '!replace {class: Synthetic, shape: [1, 8, 8], "
                   "size: 40, seed: 7}' --integrations/tensorboard/active true",
               ": integrations/tensorboard: only a training reads this key");
  CHECK(evaluated.out.find("step 69  validation/eval_op: loss ") != std::string::npos);
  CHECK(read_bytes(trained.path("train/metrics.jsonl")) == metrics);
  CHECK_FALSE(fs::exists(trained.path("train/tensorboard")));
  CHECK(last_line("runs") == listed);
  CHECK(last_line("compare " + trained.run + " " + trained.run) == compared);

  run_well(trained.folder, "stepop -p " + trained.run + " -t --num_steps 70", kMode);
  CHECK(trained.checkpoints().best() == 23);
  CHECK((trained.checkpoints().steps() == std::vector<int64_t>{23, 70}));
}

TEST_CASE("an evaluation prints its numbers, also with a level that leaves out the log") {
  const Trained trained;
  const std::string quiet =
      run_well(trained.folder, "stepop -p " + trained.run + " -l warn", kMode).out;
  CHECK(quiet.starts_with("step 69  validation/eval_op: loss "));
  CHECK(lines_of(quiet).size() == 1);
  CHECK(run_well(trained.folder, "stepop -p " + trained.run, kMode).out.find("\n" + quiet) !=
        std::string::npos);
}

TEST_CASE("-c best evaluates the checkpoint that is the best") {
  const Trained trained;
  const CommandResult result = run_well(trained.folder, "stepop -p " + trained.run + " -c best");
  CHECK(result.out.find("/model-23.safetensors (step 23)\nstep 23  ") != std::string::npos);
}

TEST_CASE("a run that only evaluated is listed and compared by what it found") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n only -b CONFIG -c " + whole_run().checkpoint);
  const std::string run = only_run(folder);
  const auto found = find_evaluations(folder.path(run));
  REQUIRE(found.size() == 1);
  const auto scalars = nlohmann::json::parse(read_bytes(found[0].folder + "/scalars.json"));
  const auto text_of = [&](const char* name) {
    return fmt::format("{:.4g}", scalars[name].get<double>());
  };
  const std::string loss = text_of("validation/eval_op/loss");
  const std::string accuracy = text_of("validation/eval_op/accuracy/accuracy");
  CHECK_FALSE(fs::exists(folder.path(run) + "/train/metrics.jsonl"));
  const std::string listed = run_well(folder, "stepop runs").out;
  CHECK(listed.find(" 460 ") != std::string::npos);
  CHECK(listed.find(" " + accuracy + " ") != std::string::npos);
  const std::string compared = run_well(folder, "stepop compare " + run + " " + run).out;
  CHECK(compared.find("validation/eval_op/loss") != std::string::npos);
  CHECK(compared.find(loss) != std::string::npos);
}

TEST_CASE(
    "evaluations run beside a training, which they do not change, and a second one is refused") {
  const ScratchFolder folder;
  folder.write("slow.yaml", kConfigOfSlow);
  const std::string train = kSlow + " -n s -b CONFIG slow.yaml -t --num_steps ";
  const CommandResult result = run_well(
      folder,
      kUntil + train +
          "1000000 >out 2>err & until_ok 'ls logs/*/train/checkpoints/model-*.safetensors'; "
          "run=$(echo logs/*); for i in 1 2 3; do " +
          kSlow + " -p $run --log_level critical || echo failed; done; " + kSlow +
          " -p $run -t 2>second; echo second $?; kill -TERM $!; wait $!; echo first $?");
  CHECK(result.out == "second 2\nfirst 143\n");
  CHECK(read_bytes(folder.path("second")).find(": another training of this run is running: ") !=
        std::string::npos);
  const std::string run = only_run(folder);
  const int64_t last = checkpoint_steps(folder.path(run) + "/train/checkpoints").back();

  const ScratchFolder alone;
  alone.write("slow.yaml", kConfigOfSlow);
  run_well(alone, train + std::to_string(last) + " --datasets/train/seconds 0");
  CHECK(differences(state_after(folder, last), state_after(alone, last)) == "");
  const auto lines = metrics_without_times(folder.path(run));
  auto all = metrics_without_times(alone.path(only_run(alone)));  // has its last evaluation, too
  // The last step of a training that ends by itself is logged, whether a log is due or not.
  std::erase_if(all, [&](const std::string& line) {
    return line.starts_with(fmt::format("{{\"step\":{},", last)) &&
           line.find("train/log_op/") != std::string::npos &&
           std::ranges::find(lines, line) == lines.end();
  });
  REQUIRE(all.size() >= lines.size());
  all.resize(lines.size());
  CHECK(fmt::format("{}", fmt::join(lines, "\n")) == fmt::format("{}", fmt::join(all, "\n")));
  std::map<std::string, int> starts;
  for (const auto& found : find_evaluations(folder.path(run))) {
    ++starts[found.start];
  }
  CHECK(starts.size() == 4);  // each has a folder of its own
}

/// Evaluates until the validation is stuck behind its first 32 examples, and kills it then.
const std::string kKilled = std::string(kUntil) + "touch stuck_validation; " + kSlow +
                            " -p $run >killed.out 2>&1 & "
                            "until_ok 'ls stuck_validation.inside'; " +
                            "until_ok '\"" STEPOP_BINARY_DIR
                            "/stepop\" inspect $run/eval/*/*/*.part | "
                            "grep \" [1-9][0-9]* rows\"'; ";

struct Slow {
  Slow() {
    folder.write("slow.yaml", kConfigOfSlow);
    run_well(folder, kSlow + " -n s -b CONFIG slow.yaml -t --num_steps 8");
  }

  ScratchFolder folder;
};

TEST_CASE("an evaluation that was killed is gone on with at its row by the same command") {
  const Slow slow;
  const std::string run = only_run(slow.folder);
  const std::string set = "run=" + run + "; ";
  run_well(
      slow.folder,
      set + "rm -r $run/eval/*; " + kKilled +
          "kill -9 $!; wait $! 2>/dev/null; rm stuck_validation stuck_validation.inside; true");
  auto found = find_evaluations(slow.folder.path(run));
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].outputs.ends_with(".part"));
  const int64_t rows = EvalFile(found[0].outputs).rows();
  REQUIRE(rows > 0);
  REQUIRE(rows < 64);

  const CommandResult rest = run_well(slow.folder, set + kSlow + " -p $run");
  const std::string start = found[0].start;
  const std::string line =
      fmt::format("continuing the evaluation of {}:{}:{} at row {} of 64\n", start.substr(11, 2),
                  start.substr(14, 2), start.substr(17, 2), rows);
  CHECK(rest.out.find(line) != std::string::npos);
  found = find_evaluations(slow.folder.path(run));
  REQUIRE(found.size() == 1);
  const std::string scalars = read_bytes(found[0].folder + "/scalars.json");

  // A whole one beside it has the same numbers, and is not gone on with.
  const CommandResult whole = run_well(slow.folder, set + kSlow + " -p $run");
  CHECK(whole.out.find("going on") == std::string::npos);
  found = find_evaluations(slow.folder.path(run));
  REQUIRE(found.size() == 2);
  CHECK(read_bytes(found[1].folder + "/scalars.json") == scalars);
  CHECK(EvalFile(found[1].outputs)
            .read("outputs/logits")
            .equal(EvalFile(found[0].outputs).read("outputs/logits")));
}

TEST_CASE(
    "an evaluation that a living process is at, or with another config, is not gone on with") {
  const Slow slow;
  const std::string run = only_run(slow.folder);
  const CommandResult result = run_well(
      slow.folder, "run=" + run + "; rm -r $run/eval/*; " + kKilled +
                       "mv stuck_validation later; " + kSlow + " -p $run; " +
                       "kill -9 $!; wait $! 2>/dev/null; " + kSlow + " -p $run --batch_size 4");
  CHECK(result.out.find("going on") == std::string::npos);
  CHECK(find_evaluations(slow.folder.path(run)).size() == 3);
}

TEST_CASE("outputs that clean_after_callbacks cannot remove are a warning, and the run goes on") {
  const ScratchFolder folder;
  folder.write("keep.py",
               "import os, sys\n"
               "os.rename(sys.argv[1], sys.argv[1] + '.kept')\n"
               "os.makedirs(sys.argv[1] + '/full')\n"
               "print('{}')\n");
  const CommandResult result = run_in(
      folder, std::string("stepop -n a -b ") + kConfig +
                  " -t --num_steps 2 --eval_hook/eval_callbacks '!replace {keep: ./keep.py}' "
                  "--eval_hook/clean_after_callbacks true");
  CHECK(result.exit_code == 0);
  CHECK(result.err.starts_with("warning: clean_after_callbacks: cannot remove logs/"));
  CHECK(result.err.ends_with("/outputs.h5: Directory not empty\n"));
}

}  // namespace evaluate_test
}  // namespace stepop
