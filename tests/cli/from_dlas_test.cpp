// `stepop new --from-dlas`: configs of DL-Art-School become ones of an ExtensibleTrainer.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/from_dlas.h"
#include "tests/places.h"

namespace stepop {
namespace from_dlas_test {

/// A whole config, as it stands there.
constexpr const char* kToy = R"(
name: toy_srgan
gpu_ids: []
fp16: false
start_step: -1
checkpointing_enabled: false
use_tb_logger: false
wandb: false
datasets:
  train: {name: noise, mode: random_dataset, n_workers: 0, batch_size: 4, hq_shape: [3, 16, 16], lq_shape: [3, 8, 8]}
networks:
  generator: {type: generator, which_model: toy_g, nf: 8, scale: 2}
  discriminator: {type: discriminator, which_model: toy_d, nf: 8}
path:
  strict_load: true
steps:
  discriminator:
    training: discriminator
    after: 4
    optimizer: adamw
    optimizer_params: {lr: 0.001, weight_decay: 0, beta1: 0.9, beta2: 0.99}
    clip_grad_eps: 1.0
    injectors:
      d_fake: {type: generator, generator: generator, grad: false, in: lq, out: d_gen}
    losses:
      gan_d: {type: discriminator_gan, gan_type: gan, weight: 1, noise: 0.004, gradient_penalty: true, real: hq, fake: d_gen}
    step_outputs: [d_gen]
  generator:
    training: generator
    optimizer: adamw
    optimizer_params: {lr: !!float 1e-3, weight_decay: 0, beta1: 0.9, beta2: 0.99}
    clip_grad_eps: 1.0
    loss_log_buffer: 50
    injectors:
      g_fake: {type: generator, generator: generator, in: lq, out: gen}
      dbg: {type: interpolate, every: 5, in: lq, out: lq_up, scale_factor: 2, mode: nearest}
    losses:
      pix: {type: pix, criterion: l1, weight: 1, real: hq, fake: gen}
      gan_g: {type: generator_gan, gan_type: gan, after: 4, weight: 0.005, noise: 0.004, discriminator: discriminator, real: hq, fake: gen}
train:
  niter: 20
  warmup_iter: -1
  mega_batch_factor: 2
  ema_rate: 0.999
  val_freq: 1000
  manual_seed: 7
  default_lr_scheme: MultiStepLR
  gen_lr_steps: [10, 15]
  lr_gamma: 0.5
eval:
  output_state: gen
logger:
  print_freq: 1
  save_checkpoint_freq: 10
  visuals: [gen, hq, lq, lq_up]
  visual_debug_rate: 5
)";

/// The columns of the table of steps before values and times: steps, parts, types and keys.
std::string plan(const std::string& out) {
  std::string text;
  size_t width = 0;
  for (const auto& line :
       lines_of(out.substr(std::min(out.find("steps in iteration"), out.size())))) {
    if (width == 0 && line.find("what comes out") != std::string::npos) {
      width = line.find("what comes out");
    }
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const bool is_row =
        line.substr(begin).starts_with("generator ") || line.substr(begin).starts_with("discr");
    if (width > 0 && is_row) text += line.substr(0, width) + "\n";
  }
  return text;
}

TEST_CASE("a whole config becomes one that trains, by the same steps as the one that ships") {
  const ScratchFolder folder;
  const auto result = make(folder, "toy", kToy);
  check_notes(result, {"name: a run is named when it starts: -n NAME\n"});
  const Value config = made(folder, "toy");
  CHECK(*config.find("iterator") == Value("ExtensibleTrainer"));
  CHECK(*config.find("num_steps") == Value(20));
  CHECK(*config.find("seed") == Value(7));
  CHECK(*config.find("batch_size") == Value(4));
  CHECK(*config.find("log_freq") == Value(1));
  CHECK(*config.find("ckpt_freq") == Value(10));
  CHECK(*config.find("ema/decay") == Value(0.999));
  CHECK(*config.find("datasets/train/tensors/lq/1") == Value(8));
  CHECK(config.find("train/niter") == nullptr);
  CHECK(config.find("path") == nullptr);

  const auto ours = run_in(folder, "stepop -b toy/toy.yaml -t --check --num_threads 1");
  CHECK_MESSAGE(ours.exit_code == 0, ours.err);
  const auto shipped = run_in(folder, "stepop -b '" STEPOP_SOURCE_DIR
                                      "/configs/extensible/toy_srgan.yaml' -t --check "
                                      "--num_threads 1");
  CHECK_FALSE(plan(ours.out).empty());
  CHECK(plan(ours.out) == plan(shipped.out));

  const auto trained = run_in(folder, "stepop -n toy -b toy/toy.yaml -t --num_threads 1");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  CHECK(trained.out.find("ended: all 20 steps are done") != std::string::npos);
}

TEST_CASE("folders of images, weights to begin with and evaluations are translated") {
  const ScratchFolder folder;
  const auto result = make(folder, "sr", R"(
model: extensibletrainer
scale: 4
gpu_ids: [0, 1]
fp16: true
use_tb_logger: yes
checkpointing_enabled: true
anything: 3
datasets:
  train: {name: a, mode: imagefolder, n_workers: 2, batch_size: 16, paths: [/data/tiles, /data/more], weights: [2, 1], target_size: 128, force_multiple: 2, scale: 4, fixed_corruptions: [jpeg, interlacing], num_corrupts_per_image: 0, fetch_alt_image: true}
  val: {name: b, mode: fullimage, dataroot_GT: /data/set14, dataroot_LQ: /data/small, scale: 4, force_multiple: 16}
networks:
  generator: {type: generator, which_model_G: RRDBNet, nf: 8, nb: 1, scale: 4}
  teacher: {type: generator, which_model_G: RRDBNet, nf: 8, nb: 1, scale: 4}
path: {strict_load: true, pretrain_model_generator: ../experiments/a.pth, pretrain_base_path_generator: net., resume_state: x.state}
steps:
  generator:
    training: generator
    check_grads_for_nan: true
    lr: 0.0001
    beta1: 0.8
    optimizer: adamw_zero
    injectors: {g: {type: generator, generator: generator, in: lq, out: gen}, w: {type: warp, in: gen, out: b}}
    losses: {pix: {type: pix, criterion: l1, weight: 1, real: hq, fake: gen}}
train:
  niter: 1000
  mega_batch_factor: 1
  val_freq_megasamples: 0.001
  default_lr_scheme: MultiStepLR
  gen_lr_steps: [500]
  lr_gamma: 0.5
  T_period: [4]
eval:
  output_state: gen
  pure: true
  evaluators: {fid: {type: some_fid, for: generator}}
logger: {print_freq: 30, save_checkpoint_freq: 100, visuals: [gen], visual_debug_rate: 100, is_mel_spectrogram: true}
)");
  const Value config = made(folder, "sr");
  const auto at = [&](const char* path) {
    const Value* found = config.find(path);
    return found == nullptr ? Value("nothing") : *found;
  };
  CHECK(at("precision") == Value("float16"));
  CHECK(at("integrations/tensorboard/active") == Value(true));
  CHECK(at("n_data_processes") == Value(2));
  CHECK(at("drop_last") == Value(true));
  CHECK(at("datasets/train/class") == Value("CorruptedImages"));
  CHECK(at("datasets/train/paths/1") == Value("/data/more"));
  CHECK(at("datasets/train/weights/0") == Value(2));
  CHECK(at("datasets/train/target_size") == Value(128));
  CHECK(at("datasets/train/force_multiple") == Value(2));
  CHECK(at("datasets/train/fixed_corruptions/0") == Value("jpeg"));
  CHECK(at("datasets/train/fixed_corruptions/1") == Value("none"));
  CHECK(at("datasets/validation/multiple") == Value(16));
  CHECK(at("datasets/validation/lq") == Value("/data/small"));
  CHECK(at("test_batch_size") == Value(1));
  CHECK(at("eval_hook/freq") == Value(63));  // 1,000 examples in batches of 16
  CHECK(at("init_from/0/path") == Value("../experiments/a.pth"));
  CHECK(at("init_from/0/prefix") == Value("net."));
  CHECK(at("init_from/0/strict") == Value(true));
  CHECK(at("networks/teacher/trainable") == Value(false));
  CHECK(at("steps/generator/optimizer") == Value("adamw"));
  CHECK(at("steps/generator/optimizer_params/lr") == Value(0.0001));
  CHECK(at("steps/generator/optimizer_params/beta1") == Value(0.8));
  CHECK(at("steps/generator/lr") == Value("nothing"));
  CHECK(at("train/T_period") == Value("nothing"));
  CHECK(at("on_nan") == Value("skip"));
  CHECK(at("checkpoint_modules") == Value("."));
  CHECK(at("distributed/shard_optimizer") == Value(true));
  check_notes(
      result,
      {"gpu_ids: one process uses one device; --processes N trains with several processes, "
       "each on a device of its own\n",
       "fp16: becomes precision: float16", "anything: no counterpart\n",
       "datasets/train/fixed_corruptions: interlacing changes nothing there, and becomes none",
       "datasets/train/fetch_alt_image: no second image",
       "datasets/train/rgb_n1_to_1: pictures are in ", "networks/teacher: no step trains it",
       "path/pretrain_model_generator: becomes init_from; its file is relative to this one now",
       "path/resume_state: its file is of torch.save",
       "steps/generator: its lr, weight_decay and betas are optimizer_params now",
       "steps/generator/optimizer: adamw_zero becomes adamw, and distributed/shard_optimizer: ",
       "steps/generator/injectors/w: warp is not here",
       "train/T_period: left out: another scheme reads it",
       "eval/pure: an evaluation always goes through the steps",
       "eval/evaluators/fid: left out: \"some_fid\" is not here",
       "logger/is_mel_spectrogram: an injector of your own logs a spectrogram"});
  // The notes are in the file as well.
  CHECK(read_bytes(folder / "sr/sr.yaml").find("\n#   anything: no counterpart\n") !=
        std::string::npos);
}

TEST_CASE("keys within networks, injectors, losses and datasets that nobody reads are named") {
  const ScratchFolder folder;
  const auto result = make(folder, "deep", R"(
gpu_ids: []
dist_backend: nccl
datasets:
  train: {name: a, mode: random_dataset, n_workers: 0, batch_size: 2, hq_shape: [3, 64, 64], lq_shape: [3, 32, 32], weights: 8, eval: true}
networks:
  generator: {type: generator, which_model: RRDBNet, nf: 4, nb: 1, scale: 2, blocks_per_checkpoint: 3, wandb_debug: true}
  discriminator: {type: discriminator, which_model: discriminator_vgg_128_gn, nf: 8, image_size: 64, scale: 2}
steps:
  generator:
    training: generator
    optimizer_params: {lr: 0.001}
    injectors:
      g: {type: generator, generator: generator, in: lq, out: gen, method: sample, args: {a: 1}, fp16: false}
      s: {type: interpolate, in: gen, out: small, scale_factor: 0.5, mode: nearest}
    losses:
      pix: {type: pix, criterion: l1, weight: 1, real: hq, fake: gen}
      gan: {type: generator_gan, gan_type: gan, weight: 1, discriminator: discriminator, real: hq, fake: gen, min_loss: 0.1}
  discriminator:
    training: discriminator
    optimizer_params: {lr: 0.001}
    losses: {gan_d: {type: discriminator_gan, gan_type: gan, weight: 1, real: hq, fake: gen}}
train: {niter: 2, mega_batch_factor: 1, mod_batch_factor_also_disable_checkpointing: true, ema_on_cpu: true}
)");
  check_notes(
      result,
      {"dist_backend: left out: --processes N trains with several processes; distributed/backend "
       "says by what\n",
       "datasets/train/weights: no counterpart\n", "datasets/train/eval: no counterpart\n",
       "networks/generator/blocks_per_checkpoint: left out: checkpoint_modules says what is "
       "computed again\n",
       "networks/generator/wandb_debug: left out: telemetry: {weights: 500} logs histograms of "
       "parameters\n",
       "networks/discriminator/scale: left out: discriminator_vgg_128_gn has no such key\n",
       "steps/generator/injectors/g/method: left out: a network is called by its forward, ",
       "steps/generator/injectors/g/args: left out: it is that of method\n",
       "steps/generator/losses/gan/min_loss: left out: it fails there in the first call; every and "
       "after of the step say it\n",
       "train/mod_batch_factor_also_disable_checkpointing: checkpoint_modules counts in every "
       "iteration\n"});
  const auto trained = run_in(folder, "stepop -n deep -b deep/deep.yaml -t --num_threads 1");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
}

TEST_CASE("a loss of VGG19 needs its file, and the translation says so") {
  const ScratchFolder folder;
  const auto result = make(folder, "seen", R"(
datasets: {train: {mode: random_dataset, batch_size: 2, hq_shape: [3, 8, 8], lq_shape: [3, 8, 8]}}
networks: {g: {type: generator, which_model: toy_g, nf: 4, scale: 1}}
steps:
  g:
    training: g
    optimizer_params: {lr: 0.001}
    losses: {fea: {type: feature, criterion: l1, which_model_F: vgg, weight: 1, real: hq, fake: lq}}
train: {niter: 2}
)");
  check_notes(result, {"steps/g/losses/fea: needs vgg19: the file of VGG19's weights"});
  CHECK(result.out.find("which_model_F") == std::string::npos);
}

TEST_CASE("what has no counterpart is named, and the run then says what is missing") {
  const ScratchFolder folder;
  const auto result = make(folder, "other", R"(
datasets: {train: {mode: zipfile, batch_size: 2}}
networks: {g: {type: generator, which_model_G: stylegan9}}
steps: {g: {training: g, injectors: {i: {type: generator, generator: g, in: hq, out: loss}}}}
)");
  check_notes(result,
              {"datasets/train/mode: zipfile has no counterpart: `stepop list dataset` shows",
               "networks/g/which_model_G: \"stylegan9\" is not here: `stepop list model` shows",
               "train/niter: is missing: num_steps says when a training ends"});
  const auto run = run_in(folder, "stepop -n x -b other/other.yaml -t");
  CHECK(run.exit_code == 2);
}

TEST_CASE("a config that is no ExtensibleTrainer's is refused, and one that is not translated") {
  const ScratchFolder folder;
  folder.write("a.yml", "model: srgan\nnetworks: {}\n");
  const auto result = run_in(folder, "stepop new a --from-dlas a.yml");
  CHECK(result.exit_code == 2);
  CHECK(
      result.err ==
      "stepop: a.yml: not a config of DL-Art-School's ExtensibleTrainer: it has no map of steps\n");
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
  folder.write("toy.yml", kToy);
  CHECK(run_in(folder, "stepop new a --from-dlas toy.yml --from-edflow toy.yml").err ==
        "stepop: stepop new: give --from-edflow or --from-dlas, found both\n");
  const auto direct = run_in(folder, "stepop -n x -b toy.yml -t");
  CHECK(direct.exit_code == 2);
  CHECK(direct.err.find("steps and networks, and no iterator: `stepop new NAME --from-dlas FILE` "
                        "translates a config of DL-Art-School") != std::string::npos);
}

}  // namespace from_dlas_test
}  // namespace stepop
