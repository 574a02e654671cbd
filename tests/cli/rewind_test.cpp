// A training that goes back to its last checkpoint, because of a loss that jumps or because memory
// ran out, with the real binary.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ATen/ops/allclose.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/cli/command.h"
#include "tests/places.h"
#include "tests/same_state.h"

namespace stepop {
namespace rewind_test {

const std::string kSlow = "OMP_NUM_THREADS=1 '" STEPOP_BINARY_DIR "/stepop_slow'";

/// Epochs of 16 batches, and 96 steps.
constexpr const char* kConfig = R"(
iterator: QuietIterator
model: {class: MLP, inputs: 16, hidden: [8], classes: 3}
datasets:
  train: {class: Synthetic, size: 64, shape: [1, 4, 4], classes: 3}
batch_size: 4
num_epochs: 6
optimizer: {class: Adam, lr: 1e-4}
log_freq: 1
start_log_freq: 1
ckpt_freq: 6
checkpoints: {keep_last: 99}
n_data_processes: 0
num_threads: 1
)";

const std::string kRewinds =
    std::string(kConfig) +
    "bad_example: 37\nhooks: {spike: {class: LossSpike, loss: loss, window: 8, then: rewind}}\n";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Checkpoint last_checkpoint(const ScratchFolder& folder, const std::string& run) {
  const std::string path = folder / run + "/train/checkpoints/";
  return load_checkpoint(path + checkpoint_name(checkpoint_steps(path).back()));
}

/// The losses of metrics.jsonl by step.
std::map<int64_t, double> losses_of(const ScratchFolder& folder, const std::string& run) {
  std::istringstream lines(read_bytes(folder / run + "/train/metrics.jsonl"));
  std::map<int64_t, double> losses;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("train/train_op/loss")) losses[json.at("step")] = json["train/train_op/loss"];
  }
  return losses;
}

TEST_CASE("a loss that jumps takes the training back, and its batches are left out") {
  const ScratchFolder folder;
  folder.write("c.yaml", kRewinds);
  const CommandResult whole = run_in(folder, kSlow + " -n a -b c.yaml -t");
  INFO(whole.err);
  REQUIRE(whole.exit_code == 0);
  const std::string run = only_run(folder);
  const std::string log = read_bytes(folder / run + "/train/log.txt");
  // The example comes once in each epoch; in the first, before eight losses are known or after.
  const size_t spikes = count_of(log, "the hook spike: step ");
  // Behind the last step there is nothing to go on with.
  const size_t rewinds = spikes - count_of(log, "; no batch is left to continue with");
  CHECK(rewinds >= 5);
  CHECK(rewinds <= 6);
  CHECK(count_of(log, "resuming at step ") == rewinds);
  CHECK(count_of(log, "deviations above the median") == 2 * spikes);  // said, and the reason
  CHECK(has(log, "ended: all "));
  const Checkpoint end = last_checkpoint(folder, run);
  CHECK(end.progress.rewinds == static_cast<int64_t>(rewinds));
  CHECK(end.progress.epoch == 6);
  CHECK(end.progress.global_step < 96);
  CHECK(end.progress.global_step >= 96 - static_cast<int64_t>(rewinds) * 6);
  const auto losses = losses_of(folder, run);
  CHECK(losses.size() == static_cast<size_t>(end.progress.global_step));
  for (const auto& [step, loss] : losses) {
    if (step > 16 && step < end.progress.global_step) CHECK(loss < 10);
  }

  // Wherever it is killed, it ends with the same bits.
  // A run that was killed before it had a config begins anew.
  const CommandResult killed = run_in(
      folder,
      "words() { if ls killed/*/configs/train_*.yaml >/dev/null 2>&1; then echo '-p killed/*'\n"
      "  else rm -rf killed; echo '-n a -b c.yaml --logs killed'; fi; }\n"
      "for i in 1 2 3 4 5 6 7 8; do\n"
      "  timeout -s KILL 0.$((3 + i)) env " +
          kSlow + " $(words) -t >/dev/null 2>&1\n" + "done\n" + kSlow + " $(words) -t >/dev/null");
  INFO(killed.err);
  REQUIRE(killed.exit_code == 0);
  CHECK(differences(end.tensors, last_checkpoint(folder, only_run(folder, "killed")).tensors) ==
        "");
}

TEST_CASE("losses of another level end no training by rewinds that change nothing") {
  const ScratchFolder folder;
  folder.write("c.yaml", kRewinds);
  const CommandResult result =
      run_in(folder, kSlow + " -n a -b c.yaml -t --bad_example -1 --level_from 40 2>&1");
  INFO(result.out);
  CHECK(result.exit_code == 0);
  CHECK(count_of(result.out, "resuming at step 36") == 3);
  CHECK(has(result.out,
            "3 rewinds to the same checkpoint left other batches out each time, and "
            "the loss jumps again: the training continues"));
  CHECK(has(result.out, "the last 10 losses are all above those before"));
  CHECK(last_checkpoint(folder, only_run(folder)).progress.rewinds == 3);
}

TEST_CASE("too many spikes end a training, and without a checkpoint it goes on") {
  const ScratchFolder folder;
  folder.write("c.yaml", kRewinds);
  const std::string two = " --hooks/spike/most_rewinds 2";
  const CommandResult ended = run_in(folder, kSlow + " -n a -b c.yaml -t" + two + " 2>&1");
  CHECK(has(ended.out, ", after 2 rewinds"));
  CHECK(ended.exit_code == 0);
  const CommandResult none =
      run_in(folder, kSlow +
                         " -n b -b c.yaml -t --ckpt_freq 1000 --num_epochs 1 --logs none "
                         "--bad_example 63 --samplers/train sequential 2>&1");
  CHECK(has(none.out, "; there is no checkpoint yet to go back to"));
  CHECK(has(none.out, "ended: all 16 steps are done"));
  const CommandResult several =
      run_in(folder, kSlow + " -n c -b c.yaml -t --processes 2 --logs several 2>&1");
  CHECK(has(several.out, "hooks/spike/then: rewind: only a training in one process goes back"));
}

TEST_CASE("when memory runs out, batches are trained in parts, with the same gradient") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfig);
  const std::string size = " --batch_size 6 --accumulate 2";
  run_in(folder, kSlow + " -n whole -b c.yaml -t --logs whole" + size);
  const std::string splits = size + " --memory 2 --on_out_of_memory split";
  const CommandResult split =
      run_in(folder, kSlow + " -n a -b c.yaml -t --logs split 2>&1" + splits);
  INFO(split.out);
  REQUIRE(split.exit_code == 0);
  CHECK(has(split.out, "step 1: no memory is left ("));
  CHECK(has(split.out, "each batch is now trained in 2 parts, whose gradients add up to the same"));
  CHECK(has(split.out, "each batch is now trained in 4 parts"));
  const std::string one = only_run(folder, "whole");
  const std::string two = only_run(folder, "split");
  const Checkpoint a = last_checkpoint(folder, one);
  const Checkpoint b = last_checkpoint(folder, two);
  CHECK(a.progress.batch_parts == 1);
  CHECK(b.progress.batch_parts == 4);
  CHECK(a.progress.global_step == b.progress.global_step);
  int compared = 0;
  for (const auto& [name, tensor] : a.tensors) {
    if (!name.starts_with("model.")) continue;
    ++compared;
    CAPTURE(name);
    CHECK(at::allclose(tensor, b.tensors.at(name), 1e-4, 1e-6));
  }
  CHECK(compared == 4);
  const auto of_whole = losses_of(folder, one);
  const auto of_split = losses_of(folder, two);
  REQUIRE(of_whole.size() == of_split.size());
  for (const auto& [step, loss] : of_whole) {
    CHECK(loss == doctest::Approx(of_split.at(step)).epsilon(1e-4));
  }

  // A resume keeps the number of parts.
  const CommandResult resumed = run_in(folder, kSlow + " -p " + two + " -t --num_epochs 7 2>&1");
  CHECK(resumed.exit_code == 0);
  CHECK_FALSE(has(resumed.out, "no memory is left"));
  CHECK(last_checkpoint(folder, two).progress.batch_parts == 4);

  const CommandResult ends =
      run_in(folder, kSlow + " -n b -b c.yaml -t --memory 2 --logs ends 2>&1" + size);
  CHECK(ends.exit_code == 1);
  CHECK(has(ends.out, "what would help: --on_out_of_memory split, which halves batches by itself"));
  const CommandResult never = run_in(
      folder,
      kSlow + " -n b -b c.yaml -t --memory 0 --logs never --on_out_of_memory split 2>&1" + size);
  CHECK(never.exit_code == 1);
  CHECK(has(never.out, "in 4 parts"));
  CHECK(has(never.out, "what would help: "));
}

}  // namespace rewind_test
}  // namespace stepop
