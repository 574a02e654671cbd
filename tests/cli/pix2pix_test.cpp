// What iterators/NECTARGAN.md and `make demo-pix2pix` type, on small sizes.
#include <doctest/doctest.h>

#include "tests/cli/digits_run.h"

namespace stepop {
namespace cli_pix2pix_test {

const std::string kFolder = STEPOP_SOURCE_DIR "/configs/pix2pix/";
const std::string kSmall = "-b " + kFolder + "base.yaml " + kFolder + "small.yaml ";
/// What makes it quick.
const std::string kTiny =
    " --networks/generator/features 4 --networks/discriminator/base_channels 4 --num_threads 1"
    " --datasets/train/examples 16 --datasets/validation/examples 6 --num_steps 3 --log_freq 1";

TEST_CASE("the small pix2pix trains, with more losses on top, and is evaluated and reported") {
  const ScratchFolder folder;
  const CommandResult trained = run_well(
      folder, "stepop -n p " + kSmall + kFolder + "extended.yaml -t" + kTiny, kStillAverages);
  for (const char* part : {"train/train_op/discriminator: D_real 0.", "train/train_op/generator: ",
                           " G_SOBEL ", " G_LAP ", "validation/eval_op: G_GAN ", " ssim ",
                           "validation/eval_op/pairs: psnr ", " psnr_above_constant "}) {
    CAPTURE(part);
    CHECK(trained.out.find(part) != std::string::npos);
  }
  const std::string run = only_run(folder);
  const CommandResult evaluated = run_well(folder, "stepop -p " + run);
  CHECK(evaluated.out.find("validation/eval_op/pairs: psnr ") != std::string::npos);
  // The worst pairs by their loss, with what went in, what came out and what should have.
  run_well(folder, "stepop report " + run);
  const std::string report = read_bytes(folder.path(run + "/report.html"));
  for (const char* key : {"outputs/input", "outputs/fake", "outputs/target", "labels/psnr"}) {
    CAPTURE(key);
    CHECK(report.find(key) != std::string::npos);
  }
}

TEST_CASE("a discriminator whose optimizer differs, a size that cannot work") {
  const ScratchFolder folder;
  const CommandResult checked = run_well(
      folder,
      "stepop " + kSmall + "-t --check --discriminator_optimizer '{class: SGD, lr: 0.1}'" + kTiny,
      kStillAverages);
  CHECK(checked.out.find("train_op/discriminator") != std::string::npos);
  const CommandResult refused =
      run_in(folder, "stepop -n p " + kSmall + "-t --networks/generator/input_size 72" + kTiny);
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("networks/generator/input_size: expected a multiple of 32, as each of "
                         "n_downs + 2 = 5 blocks halves the image, found 72") != std::string::npos);
}

}  // namespace cli_pix2pix_test
}  // namespace stepop
