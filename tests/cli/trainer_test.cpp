// Trainer and AdversarialTrainer by the configs that ship, with the real binary.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/cli/code_run.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace cli_trainer_test {

const std::string kConfigs = STEPOP_SOURCE_DIR "/configs/trainer/";

/// The file below `folder` whose path ends with `end`; empty when there is none.
std::string file_ending(const std::string& folder, const std::string& end) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().string().ends_with(end)) return entry.path().string();
  }
  return {};
}

TEST_CASE("flow_digits.yaml trains, shows a row of each class, and generates for an evaluation") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n flow -b '" + kConfigs +
                       "flow_digits.yaml' -t --num_steps 3 --model/network/depth 1 --model/steps 2 "
                       "--sampling/digits/when 3 --eval_hook/max_batches 1 "
                       "--ema/decay/update_after_step 0");
  const std::string run = only_run(folder);
  CHECK(std::filesystem::exists(folder.path(run) +
                                "/train/train/sample_op/digits/samples_0000003.png"));
  const auto made = run_well(folder, "stepop -p " + run +
                                         " --eval_functor Generate -n made --test_batch_size 4 "
                                         "--eval_hook/max_batches 1");
  const std::string file = file_ending(folder.path(run) + "/eval", "made/outputs.h5");
  const auto inspected = run_well(folder, "stepop inspect " + file).out;
  CHECK(inspected.find("outputs/sample") != std::string::npos);
  CHECK(inspected.find("[4, 1, 8, 8]") != std::string::npos);
  CHECK(inspected.find("outputs/class") != std::string::npos);
}

TEST_CASE(
    "adversarial_vae.yaml is whole, and a sampler that nobody knows is refused with its place") {
  const ScratchFolder folder;
  const std::string config = "-b '" + kConfigs + "adversarial_vae.yaml'";
  CHECK(run_well(folder, "stepop " + config + " -t --check").out.find("sample_op/new ") !=
        std::string::npos);
  const auto refused = run_in(folder, "stepop " + config + " -t --sampling/new/class NoisyToImage");
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("sampling/new") != std::string::npos);
  CHECK(refused.err.find("NoiseToImage") != std::string::npos);
}

}  // namespace cli_trainer_test
}  // namespace stepop
