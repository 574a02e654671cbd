// A run, a checkpoint and outputs of stepop 0.1.0, as that version wrote them:
// tests/data/before/run, 10 steps of training, and resumed-20.safetensors, what it then had after
// 10 more; and its configs.
#include <ATen/ops/allclose.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "eval_out/read/eval_reader.h"
#include "runtime/core/formats/safetensors.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace earlier_version_test {

namespace fs = std::filesystem;

const std::string kBefore = STEPOP_SOURCE_DIR "/tests/data/before";

TEST_CASE("a run of an earlier version is resumed, and ends with the weights that it had there") {
  const ScratchFolder folder;
  fs::copy(kBefore + "/run", folder / "run",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const CommandResult result = run_in(folder, "stepop -p run -t --num_epochs 4");
  CHECK(result.err == "");
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.find("resuming at step 10 of 20 ") != std::string::npos);
  const State now = load_safetensors(folder / "run/train/checkpoints/model-20.safetensors").tensors;
  const State then = load_safetensors(kBefore + "/resumed-20.safetensors").tensors;
  REQUIRE(then.size() > 10);
  for (const auto& [name, tensor] : then) {
    CAPTURE(name);
    REQUIRE(now.contains(name));
    // Another machine may round in another way.
    CHECK(at::allclose(now.at(name).to(at::kDouble), tensor.to(at::kDouble), 1e-5, 1e-6));
  }
}

TEST_CASE("outputs of an earlier version are read, and mean what they meant") {
  const std::string folder = kBefore + "/run/eval/2026-11-22T04-51-03_before/10";
  const EvalFile file(folder + "/outputs.h5");
  CHECK(file.complete());
  CHECK(file.rows() == 20);
  CHECK(file.keys() == std::vector<std::string>{"labels/loss", "outputs/class", "outputs/logits"});
  CHECK(file.read("outputs/logits").sizes() == at::IntArrayRef({20, 4}));
  // As its scalars.json says: 1.2333665102720262 and 0.55.
  CHECK(file.read("labels/loss").mean().item<double>() == doctest::Approx(1.2333665102720262));
  const at::Tensor right = file.read("outputs/logits").argmax(1).eq(file.read("outputs/class"));
  CHECK(right.to(at::kDouble).mean().item<double>() == doctest::Approx(0.55));

  const ScratchFolder scratch;
  fs::copy(kBefore + "/run", scratch / "run",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const CommandResult eval = run_in(scratch, "stepop eval run -c accuracy && stepop inspect run");
  CHECK(eval.err == "");
  CHECK(eval.exit_code == 0);
  CHECK(eval.out.find("0.55") != std::string::npos);
}

TEST_CASE("the configs of an earlier version train as they were") {
  const ScratchFolder folder;
  fs::copy(kBefore + "/configs", folder / "configs", fs::copy_options::recursive);
  fs::create_directory_symlink(STEPOP_SOURCE_DIR "/configs/data", folder / "configs/data");
  for (const std::string files :
       {"digits.yaml", "digits.yaml configs/small.yaml", "extensible/sr.yaml",
        "extensible/sr_gan.yaml", "extensible/toy_srgan.yaml", "extensible/diffusion.yaml",
        "pix2pix/base.yaml configs/pix2pix/small.yaml configs/pix2pix/extended.yaml",
        "trainer/adversarial_vae.yaml", "trainer/flow_digits.yaml",
        "vunet/base.yaml configs/vunet/small.yaml"}) {
    const CommandResult result =
        run_in(folder, "stepop -n a -b configs/" + files + " -t --num_steps 1");
    CHECK_MESSAGE(result.exit_code == 0, files, ": ", result.err);
    CHECK(fs::exists(folder.path(only_run(folder)) + "/train/checkpoints/model-1.safetensors"));
    fs::remove_all(folder / "logs");
  }
}

}  // namespace earlier_version_test
}  // namespace stepop
