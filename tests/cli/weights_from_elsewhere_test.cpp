// A start whose weights come from another run is killed before its first regular checkpoint; with
// the real binary.
#include <ATen/TensorOperators.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/digits_run.h"
#include "tests/same_state.h"

namespace stepop {
namespace weights_from_elsewhere_test {

/// An epoch takes minutes; no step changes a weight.
constexpr const char* kLongEpoch = R"(
iterator: Classifier
model: {class: MLP, inputs: 64, hidden: [16]}
datasets: {train: {class: Synthetic, size: 1000000, shape: [1, 8, 8]}}
optimizer: {class: SGD, lr: 0}
batch_size: 1
num_steps: 1000000
log_ops: []
n_data_processes: 0
)";

/// Makes the run `first`, of 3 steps, starts `line` with its weights, and sends `signal` once the
/// new run has its folder. Returns the checkpoint of `first`.
std::string stop_early(const ScratchFolder& folder, const std::string& line,
                       const std::string& signal) {
  folder.write("long.yaml", kLongEpoch);
  run_well(folder, "stepop -n first -b long.yaml -t --num_steps 3 --seed 7; mv logs/*_first first",
           kNoWeightChanges);
  const CommandResult result =
      run_in(folder, "export OMP_NUM_THREADS=1\n'" STEPOP_BINARY_DIR "/stepop' " + line +
                         " & until [ -e logs/2* ]; do sleep 0.001; done\n"
                         "kill -" +
                         signal + " $!; wait $!");
  CHECK(result.exit_code == (signal == "KILL" ? 128 + 9 : 128 + 15));
  return folder.path("first/train/checkpoints/model-3.safetensors");
}

std::string differences_of_weights(const ScratchFolder& folder, int64_t step,
                                   const std::string& before) {
  const auto weights = [](State state) {
    std::erase_if(state, [](const auto& item) { return !item.first.starts_with("model."); });
    return state;
  };
  return differences(weights(state_after(folder, step)), weights(load_checkpoint(before).tensors));
}

TEST_CASE("a run that begins with -r and is killed at once goes on with those weights") {
  const ScratchFolder folder;
  const std::string before = stop_early(folder, "-n tuned -p first -r -t --seed 1", "KILL");
  const CommandResult again =
      run_well(folder, "stepop -p " + only_run(folder) + " -t --num_steps 2", kNoWeightChanges);
  CHECK(again.out.find("resuming at step 0 of 2 ") != std::string::npos);
  CHECK(differences_of_weights(folder, 2, before) == "");
}

TEST_CASE("a run that goes on from -c in a folder of its own, killed at once, keeps the count") {
  const ScratchFolder folder;
  const char* signal = "KILL";
  SUBCASE("killed") {}
  SUBCASE("asked to stop") { signal = "TERM"; }
  const std::string before = stop_early(
      folder, "-n own -b long.yaml -c first/train/checkpoints/latest.safetensors -t --seed 7",
      signal);
  const int64_t last =
      checkpoint_steps(folder.path(only_run(folder)) + "/train/checkpoints").back() + 1;
  const CommandResult again =
      run_well(folder, "stepop -p " + only_run(folder) + " -t --num_steps " + std::to_string(last),
               kNoWeightChanges);
  CHECK(again.out.find("resuming at step " + std::to_string(last - 1)) != std::string::npos);
  CHECK(last > 3);
  CHECK(differences_of_weights(folder, last, before) == "");
}

TEST_CASE("a run that goes on from another run's checkpoint keeps what it had, aside") {
  const ScratchFolder folder;
  folder.write("long.yaml", kLongEpoch);
  run_well(folder, "stepop -n first -b long.yaml -t --num_steps 3 --seed 7; mv logs/*_first first",
           kNoWeightChanges);
  run_well(folder, "stepop -n a -b long.yaml -t --num_steps 3 --seed 8", kNoWeightChanges);
  const std::string run = only_run(folder);
  const State own = state_after(folder, 3);
  const std::string other = folder.path("first/train/checkpoints/model-3.safetensors");
  run_well(folder, "stepop -p " + run + " -c " + other + " -t --num_steps 3 --seed 7",
           kNoWeightChanges);
  CHECK(differences_of_weights(folder, 3, other) == "");
  auto aside = files_below(folder.path(run) + "/train/superseded");
  std::erase_if(aside, [](const auto& file) { return !file.ends_with(".safetensors"); });
  REQUIRE(aside.size() == 1);
  CHECK(differences(load_checkpoint(folder.path(run) + "/train/superseded/" + aside[0]).tensors,
                    own) == "");
}

}  // namespace weights_from_elsewhere_test
}  // namespace stepop
