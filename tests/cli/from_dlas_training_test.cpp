// What `stepop new --from-dlas` makes of recipes trains, or is evaluated, on a folder of pictures.
#include <ATen/ops/randint.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/pictures/image_file.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/cli/from_dlas.h"

namespace stepop {
namespace from_dlas_test {

TEST_CASE("a folder of pictures trains a GAN and a diffusion that sees how they were corrupted") {
  const ScratchFolder folder;
  for (const char* name : {"a", "b", "c"}) {
    folder.write(std::string("pictures/") + name + ".png",
                 encode_png(at::randint(0, 256, {40, 36, 3}, at::kByte)));
  }
  const auto result = make(folder, "both", R"(
gpu_ids: []
datasets:
  train: {name: a, mode: imagefolder, n_workers: 0, batch_size: 2, paths: [../pictures, ../pictures], weights: [1, 2], target_size: 32, scale: 2, rgb_n1_to_1: true, fixed_corruptions: [jpeg-broad, gaussian_blur, color_shift], random_corruptions: [none, block_noise], num_corrupts_per_image: 1}
  val: {name: b, mode: fullimage, dataroot_GT: ../pictures, scale: 2, force_multiple: 8}
networks:
  generator: {type: generator, which_model_G: RRDBNet, nf: 4, nb: 1, gc: 4, scale: 2}
  discriminator: {type: discriminator, which_model_D: discriminator_vgg_128_gn, nf: 8, image_size: 32}
  denoiser: {type: generator, which_model_G: unet_diffusion, args: {image_size: 32, in_channels: 3, num_corruptions: 3, model_channels: 32, out_channels: 6, num_res_blocks: 1, attention_resolutions: [], dropout: 0, channel_mult: [1, 1], num_heads: 1}}
steps:
  discriminator:
    training: discriminator
    optimizer_params: {lr: 0.001}
    injectors: {fake: {type: generator, generator: generator, grad: false, in: lq, out: fake}}
    losses: {gan_d: {type: discriminator_gan, gan_type: gan, weight: 1, real: hq, fake: fake}}
  denoiser:
    training: denoiser
    optimizer_params: {lr: 0.001}
    injectors:
      noised: {type: gaussian_diffusion, train: true, in: hq, generator: denoiser, beta_schedule: {schedule_name: linear, num_diffusion_timesteps: 40}, diffusion_args: {model_mean_type: epsilon, model_var_type: learned_range, loss_type: mse}, sampler_type: uniform, model_input_keys: {low_res: lq, corruption_factor: corruption_entropy}, out: loss, out_key_vb_loss: vb, out_key_x_start: start}
    losses: {noise: {type: direct, weight: 1, key: loss}, variance: {type: direct, weight: 1, key: vb}}
  generator:
    training: generator
    optimizer_params: {lr: 0.001}
    injectors: {gen: {type: generator, train: true, generator: generator, in: lq, out: gen}}
    losses:
      pix: {type: pix, criterion: l1, weight: 1, real: hq, fake: gen}
      gan: {type: generator_gan, gan_type: gan, weight: 0.1, discriminator: discriminator, real: hq, fake: gen}
train: {niter: 2, mega_batch_factor: 1, val_freq: 2}
eval:
  output_state: gen
  injectors: {gen: {type: generator, generator: generator, in: lq, out: gen}}
logger: {print_freq: 1, save_checkpoint_freq: 2, visuals: [gen, hq, cropped], visual_debug_rate: 1}
)");
  const std::string page = read_bytes(folder.path("both/README.md"));
  CHECK(page.starts_with("# both\n\n`both.yaml` is a translation of DL-Art-School's "));
  CHECK(page.find(".cpp") == std::string::npos);
  check_notes(result,
              {"datasets/train/fixed_corruptions: color_shift changes nothing there",
               "eval/injectors/gen: is in steps/generator, with eval: true",
               "logger/visuals: cropped is left out: nothing makes it",
               "steps/discriminator/losses/gan_d: gets train: true: evaluations have no losses"});
  const auto trained = run_in(folder, "stepop -n both -b both/both.yaml -t --num_threads 1");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  CHECK(trained.out.find("ended: all 2 steps are done") != std::string::npos);
}

TEST_CASE("the recipe of BYOL trains on a folder of pictures, with a network of one's own") {
  const ScratchFolder folder;
  for (int i = 0; i < 4; ++i) {
    folder.write(fmt::format("pictures/{}.png", i),
                 encode_png(at::randint(0, 256, {40, 36, 3}, at::kByte)));
  }
  const auto result = make(folder, "byol", R"(
datasets:
  train:
    n_workers: 0
    batch_size: 4
    mode: byol_dataset
    crop_size: 24
    normalize: true
    key1: hq
    key2: hq
    dataset: {mode: imagefolder, paths: ../pictures, target_size: 32, scale: 1, skip_lq: true}
networks:
  generator:
    type: generator
    which_model_G: byol
    image_size: 24
    subnet: {which_model_G: resnet52, pretrained: false}
    hidden_layer: avgpool
path: {strict_load: true}
steps:
  generator:
    training: generator
    optimizer: lars
    optimizer_params: {lr: 0.2, weight_decay: !!float 1.5e-6, lars_coefficient: 0.001, momentum: 0.9}
    injectors: {gen_inj: {type: generator, generator: generator, in: [aug1, aug2], out: loss}}
    losses: {byol_loss: {type: direct, key: loss, weight: 1}}
train:
  niter: 2
  warmup_iter: -1
  mega_batch_factor: 2
  val_freq: 2000
  default_lr_scheme: CosineAnnealingLR_Restart
  T_period: [120000, 120000, 120000]
  warmup: 10000
  eta_min: 0.01
  restarts: [140000, 280000]
  restart_weights: [0.5, 0.25]
eval: {output_state: loss}
logger: {print_freq: 1, save_checkpoint_freq: 1000, visuals: [hq, aug1, aug2], visual_debug_rate: 1}
)");
  check_notes(
      result,
      {"networks/generator/aug_enable: there, the network changes the views once more",
       "networks/generator/subnet/which_model_G: \"resnet52\" is not here: `stepop list model`",
       "datasets/train/normalize: pictures are in [-1, 1]"});
  const Value config = made(folder, "byol");
  CHECK(flow_yaml(*config.find("datasets/train/views")) == "{aug1: hq, aug2: hq}");
  CHECK(config.find("datasets/train/augmentations")->as_list().size() == 5);
  CHECK(flow_yaml(*config.find("networks/generator/subnet")) ==
        "{pretrained: false, class: resnet52}");
  CHECK(*config.find("networks/generator/hidden_layer") == Value("avgpool"));
  CHECK(*config.find("datasets/train/dataset/class") == Value("CorruptedImages"));
  const auto trained =
      run_in(folder,
             "stepop -n x -b byol/byol.yaml -t --num_threads 1 --networks/generator/subnet "
             "'!replace {class: LeNet, image_size: [24, 24], channels: 3}' "
             "--networks/generator/hidden_layer -1");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  CHECK(trained.out.find("ended: all 2 steps are done") != std::string::npos);
}

TEST_CASE("the recipe of SRFlow trains, with an evaluator that has its own pictures") {
  const ScratchFolder folder;
  for (int i = 0; i < 4; ++i) {
    folder.write(fmt::format("pictures/{}.png", i),
                 encode_png(at::randint(0, 256, {40, 40, 3}, at::kByte)));
  }
  const auto result = make(folder, "srflow", R"(
scale: 4
datasets:
  train: {n_workers: 0, batch_size: 1, name: a, mode: single_image_extensible, paths: ../pictures, target_size: 32, force_multiple: 1, scale: 4, num_corrupts_per_image: 0}
networks:
  generator:
    type: generator
    which_model_G: srflow
    nf: 8
    nb: 2
    K: 1
    gc: 4
    scale: 4
    initial_stride: 1
    flow_scale: 4
    train_RRDB: true
    flow: {patch_size: 32, K: 1, L: 3, noInitialInj: true, coupling: CondAffineSeparatedAndCond, additionalFlowNoAffine: 1, split: {enable: true}, fea_up0: true, fea_up-1: true, stackRRDB: {blocks: [0, 1, 0, 1], concat: true}, gaussian_loss_weight: 1}
path: {strict_load: true}
steps:
  generator:
    training: generator
    optimizer_params: {lr: !!float 2e-4, weight_decay: 0, beta1: 0.9, beta2: 0.99}
    injectors:
      z_inj: {type: generator, generator: generator, in: [hq, lq, None, None, False], out: [z, nll]}
      gen_inj: {every: 50, type: generator, generator: generator, in: [None, lq, None, .4, True], out: [gen]}
    losses: {log_likelihood: {type: direct, key: nll, weight: 1}}
train: {niter: 2, warmup_iter: -1, mega_batch_factor: 1, val_freq: 2, default_lr_scheme: MultiStepLR, gen_lr_steps: [20000], lr_gamma: 0.5}
eval:
  evaluators:
    gaussian: {for: generator, type: flownet_gaussian, batch_size: 2, dataset: {paths: ../pictures, target_size: 32, force_multiple: 1, scale: 4, eval: False, num_corrupts_per_image: 0, corruption_blur_scale: 1}}
  output_state: eval_gen
logger: {print_freq: 1, save_checkpoint_freq: 2, visuals: [gen, hq, lq], visual_debug_rate: 1}
)");
  check_notes(result, {"eval/evaluators/gaussian/type: flownet_gaussian becomes flow_gaussian_nll",
                       "eval/output_state: eval_gen is left out: nothing makes it"});
  const auto trained = run_in(folder, "stepop -n flow -b srflow/srflow.yaml -t --num_threads 1");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  CHECK(trained.out.find("gaussian: gaussian ") != std::string::npos);
  CHECK(trained.out.find("ended: all 2 steps are done") != std::string::npos);
}

TEST_CASE("a config in which no step trains is evaluated, by the command that is printed") {
  const ScratchFolder folder;
  folder.write("pictures/a.png", encode_png(at::randint(0, 256, {16, 16, 3}, at::kByte)));
  folder.write("weights.yaml", R"(
iterator: ExtensibleTrainer
num_steps: 1
batch_size: 1
datasets: {train: {class: CorruptedImages, paths: pictures, target_size: 16, skip_lq: true}}
networks: {g: {which_model_G: toy_g, nf: 4, scale: 2}}
steps:
  g:
    training: g
    optimizer_params: {lr: 0.001}
    injectors: {gen: {type: generator, generator: g, in: hq, out: gen}}
    losses: {gen: {type: direct, key: gen, weight: 1}}
)");
  const auto trained = run_in(folder, "stepop -n w -b weights.yaml -t --num_threads 1");
  REQUIRE_MESSAGE(trained.exit_code == 0, trained.err);
  for (const auto& run : std::filesystem::directory_iterator(folder.path("logs"))) {
    std::filesystem::copy_file(run.path() / "train/checkpoints/model-1.safetensors",
                               folder.path("w.safetensors"));
  }
  const auto result = make(folder, "test", R"(
datasets: {train: {name: a, mode: imagefolder, batch_size: 1, paths: ../pictures, target_size: 16, scale: 1, skip_lq: true}}
networks: {g: {type: generator, which_model_G: toy_g, nf: 4, scale: 2}}
path: {pretrain_model_g: ../w.safetensors}
steps: {g: {training: g, injectors: {gen: {type: generator, generator: g, in: hq, out: gen}}}}
train: {niter: 500000, default_lr_scheme: MultiStepLR, gen_lr_steps: [20000], lr_gamma: 0.5}
eval: {output_state: gen}
)");
  check_notes(result, {"datasets/train: is datasets/validation here: no step trains"});
  CHECK(result.out.find("-b test.yaml   # no step trains: this evaluates") != std::string::npos);
  CHECK(read_bytes(folder.path("test/README.md")).find(" -t") == std::string::npos);
  const auto run = run_in(folder, "stepop -n first -b test/test.yaml");
  CHECK_MESSAGE(run.exit_code == 0, run.err);
  CHECK(run.out.find("outputs/gen") != std::string::npos);
}

}  // namespace from_dlas_test
}  // namespace stepop
