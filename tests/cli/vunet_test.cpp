// What configs/vunet/README.md tells to type.
#include <doctest/doctest.h>

#include "tests/cli/digits_run.h"

namespace stepop {
namespace cli_vunet_test {

const std::string kFolder = STEPOP_SOURCE_DIR "/configs/vunet/";
const std::string kSmall = "-b " + kFolder + "base.yaml " + kFolder + "small.yaml ";
/// What makes it quick.
const std::string kTiny =
    " --model/nf_start 4 --model/nf_max 8 --datasets/train/examples 8 --batch_size 4"
    " --datasets/validation/examples 8 --num_threads 1";

TEST_CASE("VUNet trains with the second config on top, and transfer.yaml evaluates the run") {
  const ScratchFolder folder;
  const CommandResult trained = run_well(
      folder, "stepop -n vunet " + kSmall + "-t --num_steps 2 --losses/color_L1/weight 2" + kTiny,
      ": log_ops/2/when: is never due in this training of ");
  CHECK(trained.out.find("  color_L1:\n    weight: 2\n") != std::string::npos);
  CHECK(trained.out.find("validation/eval_op/metrics: psnr ") != std::string::npos);
  CHECK(trained.out.find("validation/eval_op/copy: psnr ") != std::string::npos);
  const std::string run = only_run(folder);
  const CommandResult evaluated =
      run_well(folder, "stepop -p " + run + " " + kSmall + kFolder + "transfer.yaml" + kTiny);
  CHECK(evaluated.out.find("validation/transfer_op/truth: psnr ") != std::string::npos);
  size_t pictures = 0;
  for (const auto& name : files_below(folder.path(run + "/eval"))) {
    pictures += name.ends_with("2/matrix/transfer_0000002.png") ? 1 : 0;
    pictures += name.ends_with("2/reconstruction/reconstruction_0000002.png") ? 1 : 0;
  }
  CHECK(pictures == 2);
}

TEST_CASE("VUNet's perceptual loss is refused without the weights of VGG19") {
  const ScratchFolder folder;
  const CommandResult result =
      run_in(folder, "stepop -n vunet " + kSmall + "-t --losses/perceptual/weight 1" + kTiny);
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("losses/perceptual/vgg19: the perceptual loss needs the weights of VGG19: "
                        "name their file here; this makes it: python -c ") != std::string::npos);
  CHECK(only_run(folder) == "");
}

}  // namespace cli_vunet_test
}  // namespace stepop
