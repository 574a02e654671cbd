// Recipes with the datasets that views of others stand for train once they are translated.
#include <ATen/ops/randint.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "runtime/core/pictures/image_file.h"
#include "tests/cli/from_dlas.h"

namespace stepop {
namespace from_dlas_test {

/// A recipe that trains a network of pictures, without its dataset.
constexpr const char* kOfPictures = R"(
gpu_ids: []
datasets:
  train: {{name: a, n_workers: 0, batch_size: 2, {0}}}
networks:
  generator: {{type: generator, which_model_G: RRDBNet, nf: 4, nb: 1, gc: 4, scale: 1}}
steps:
  generator:
    training: generator
    optimizer_params: {{lr: 0.001}}
    injectors: {{gen: {{type: generator, generator: generator, in: {1}lq, out: gen}}}}
    losses: {{pix: {{type: pix, criterion: l1, weight: 1, real: {1}hq, fake: gen}}}}
train: {{niter: 2, mega_batch_factor: 1, default_lr_scheme: MultiStepLR, gen_lr_steps: [10], lr_gamma: 0.5}}
logger: {{print_freq: 1, save_checkpoint_freq: 10, visuals: [gen, {1}hq], visual_debug_rate: 1}}
)";

/// Trains the recipe's two steps.
void check_trains(const ScratchFolder& folder, const std::string& name, const std::string& yaml) {
  CAPTURE(name);
  make(folder, name, yaml);
  const auto trained =
      run_in(folder, fmt::format("stepop -n {0} -b {0}/{0}.yaml -t --num_threads 1", name));
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  CHECK(trained.out.find("ended: all 2 steps are done") != std::string::npos);
}

TEST_CASE("recipes with torch_dataset, stylegan2, random_aug_wrapper and combined train") {
  const ScratchFolder folder;
  for (int i = 0; i < 4; ++i) {
    folder.write(fmt::format("pictures/{}/{}.png", i % 2, i),
                 encode_png(at::randint(0, 256, {40 + i, 36, 3}, at::kByte)));
  }
  const auto of = [](const char* dataset, const char* prefix = "") {
    return fmt::format(fmt::runtime(kOfPictures), dataset, prefix);
  };
  check_trains(folder, "torch",
               of("mode: torch_dataset, dataset: imagefolder, image_size: 16, random_crop: true, "
                  "kwargs: {root: ../pictures}"));
  check_trains(folder, "style",
               of("mode: stylegan2, path: ../pictures, target_size: 16, aug_prob: 0.5"));
  check_trains(folder, "aug",
               of("mode: random_aug_wrapper, crop_size: 16, dataset: {mode: imagefolder, paths: "
                  "../pictures, target_size: 24, scale: 1}"));
  check_trains(folder, "both",
               of("mode: combined, scale: 1, default: {mode: imagefolder, paths: ../pictures, "
                  "target_size: 16}, other: {mode: stylegan2, path: ../pictures, target_size: 24, "
                  "aug_prob: 0}",
                  "other_"));
}

TEST_CASE("a recipe with unsupervised_audio trains") {
  const ScratchFolder folder;
  for (const char* name : {"a", "deep/b"}) {
    folder.write(std::string("write.py"), R"(
import os, random, struct, sys, wave
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
with wave.open(sys.argv[1], "wb") as f:
    f.setnchannels(1), f.setsampwidth(2), f.setframerate(22050)
    f.writeframes(b"".join(struct.pack("<h", random.randrange(-9000, 9000)) for _ in range(9000)))
)");
    const auto written = run_in(folder, fmt::format("python3 write.py sounds/{}.wav", name));
    REQUIRE_MESSAGE(written.exit_code == 0, written.err);
  }
  check_trains(folder, "audio", R"(
gpu_ids: []
datasets:
  train: {name: a, mode: unsupervised_audio, n_workers: 0, batch_size: 2, path: ../sounds, cache_path: c.pth, pad_to_samples: 8192}
networks:
  generator: {type: generator, which_model_G: MLP, inputs: 8192, classes: 4}
steps:
  generator:
    training: generator
    optimizer_params: {lr: 0.001}
    injectors: {gen: {type: generator, generator: generator, in: clip, out: gen}}
    losses: {gen: {type: direct, weight: 1, key: gen}}
train: {niter: 2, mega_batch_factor: 1, default_lr_scheme: MultiStepLR, gen_lr_steps: [10], lr_gamma: 0.5}
)");
}

}  // namespace from_dlas_test
}  // namespace stepop
