// Every key of DL-Art-School's ExtensibleTrainer is translated, or named in a note.
#include "runtime/tools/migrate/from_dlas.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace from_dlas_keys_test {

constexpr const char* kBase = R"(
datasets:
  train: {mode: imagefolder, paths: a, batch_size: 2}
  val: {mode: fullimage, dataroot_GT: a}
networks:
  g: {type: generator, which_model: toy_g, nf: 4, scale: 2}
  d: {type: discriminator, which_model: toy_d, nf: 4}
steps:
  g:
    training: g
    optimizer_params: {lr: 0.1}
    injectors:
      made: {type: generator, generator: g, in: lq, out: gen}
      noised: {type: gaussian_diffusion, in: hq, generator: g, out: loss}
    losses:
      pix: {type: pix, criterion: l1, weight: 1, real: hq, fake: gen}
      gan: {type: generator_gan, gan_type: gan, weight: 1, discriminator: d, real: hq, fake: gen}
  d:
    training: d
    optimizer_params: {lr: 0.1}
    losses: {gan_d: {type: discriminator_gan, gan_type: gan, weight: 1, real: hq, fake: gen}}
train: {niter: 2, default_lr_scheme: MultiStepLR}
eval: {output_state: hq}
)";

/// What the translation is, as one text.
std::string translated(const Value& config) {
  const TranslatedConfig made = translate_dlas(config);
  std::string text = to_yaml(made.config);
  for (const auto& note : made.notes) text += fmt::format("{}: {}\n", note.key, note.text);
  return text;
}

TEST_CASE("keys before the kind of a byol network are left out by name") {
  std::string yaml = kBase;
  const std::string g = "{type: generator, which_model: toy_g, nf: 4, scale: 2}";
  yaml.replace(yaml.find(g), g.size(),
               "{type: generator, hidden_layer: 3, aug_enable: true, which_model_G: byol, "
               "image_size: 8}");
  const std::string text = translated(parse_yaml(yaml, {"base", 0}));
  CHECK(text.find("networks/g/hidden_layer: 3 is left out") != std::string::npos);
  CHECK(text.find("which_model_G: byol") != std::string::npos);
}

/// The keys at each place whose addition changes neither the translated config nor a note.
std::vector<std::string> vanished(const std::string& place, const std::vector<std::string>& keys) {
  const Value base = parse_yaml(kBase, {"base", 0});
  const std::string without = translated(base);
  std::vector<std::string> names;
  for (const auto& key : keys) {
    const size_t colon = key.find(": ");
    const std::string name = key.substr(0, colon);
    TranslatedConfig config;  // for its `set`
    config.config = base;
    config.set(place.empty() ? name : place + "/" + name,
               parse_yaml("x" + key.substr(colon), {"key", 0}).as_map().begin()->second);
    if (translated(config.config) == without) names.push_back(place + "/" + name);
  }
  return names;
}

void check(const std::string& place, const std::vector<std::string>& keys) {
  CAPTURE(place);
  CHECK(vanished(place, keys) == std::vector<std::string>{});
}

TEST_CASE("averages on the CPU stay there, and those that are switched off stay off") {
  const auto text_of = [](const std::string& train) {
    TranslatedConfig config;  // for its `set`
    config.config = parse_yaml(kBase, {"base", 0});
    config.set("train/ema_on_cpu", Value(true));
    if (!train.empty()) config.set(train, Value(false));
    return translated(config.config);
  };
  CHECK(text_of("").find("ema:\n  on_cpu: true\n") != std::string::npos);
  const std::string off = text_of("train/ema_enabled");
  CHECK(off.find("on_cpu: true") == std::string::npos);
  CHECK(off.find("train/ema_on_cpu: left out, as ema_enabled is false") != std::string::npos);
}

TEST_CASE("no key of a config vanishes in its translation") {
  check("", {"name: a",
             "gpu_ids: [0, 1]",
             "fp16: true",
             "grad_scaler_enabled: true",
             "start_step: 5",
             "training_data_encountered: 3",
             "force_start_step: 3",
             "checkpointing_enabled: true",
             "use_tb_logger: true",
             "wandb: true",
             "wandb_project_name: p",
             "wandb_run_name: r",
             "wandb_progress_use_raw_steps: true",
             "dist_backend: apex",
             "ddp_find_unused_parameters: true",
             "ddp_static_graph: true",
             "keep_optimizer_states_on_cpu: true",
             "automatically_scale_grads_for_fanin: true",
             "automatically_scale_base_layer_size: 1024",
             "automatically_recover_nan_by_reverting_n_saves: 2",
             "anomaly_detection: true",
             "cuda_benchmarking_enabled: true",
             "experiments: [x]",
             "image_normalization_range: [-1, 1]",
             "colab_mode: true",
             "ssh_server: s",
             "ssh_username: u",
             "ssh_password: p",
             "remote_path: r",
             "amp_opt_level: O1",
             "model: extensibletrainer",
             "scale: 4",
             "distortion: sr",
             "suffix: s",
             "dataset: {video_file: a}",
             "frames_per_mini_vid: 3",
             "minivid_crf: 3",
             "minivid_start_no: 1",
             "mini_vid_output_folder: f",
             "generator_img_index: 1",
             "recurrent_mode: true",
             "recurrent_hr_generator: g"});
  check("networks/g", {"trainable: false", "after: 5", "wandb_debug: true",
                       "blocks_per_checkpoint: 3", "args: {a: 1}", "kwargs: {a: 1}", "pool: 3"});
  check("steps/g", {"optimizer: lamb", "clip_grad_eps: 1", "check_grads_for_nan: true",
                    "loss_log_buffer: 20", "step_outputs: [gen]", "requires: [lq]", "every: 2",
                    "after: 2", "before: 2", "generator_outputs: [a]", "generator: g", "lr: 0.1",
                    "weight_decay: 0.1", "beta1: 0.9", "beta2: 0.9"});
  check("steps/g/optimizer_params",
        {"weight_decay: 0.1", "beta1: 0.5", "beta2: 0.5", "momentum: 0.5", "lars_coefficient: 0.1",
         "param_groups: {head: {lr: 1}}", "after: 3", "before: 3"});
  check("steps/g/injectors/made",
        {"after: 1", "before: 1", "every: 2", "train: true", "eval: true", "no_grad: true",
         "no_accum: true", "grad: false", "method: m", "args: {a: 1}", "fp16: false"});
  check("steps/g/injectors/noised",
        {"causal_mode: true", "causal_slope_range: [1, 8]", "preprocess_fn: f",
         "diffusion_args: {conditioning_free: true}", "sampler_type: uniform", "out_key_vb_loss: v",
         "deterministic_timesteps_every: 3"});
  check("steps/g/losses/pix", {"after: 1", "before: 1", "every: 2", "real_scale: 2",
                               "real_offset: 1", "report_metrics: true"});
  check("steps/g/losses/gan",
        {"noise: 0.1", "detach_real: false", "min_loss: 0.4", "gradient_penalty: true"});
  check("train", {"mega_batch_factor: 2",
                  "warmup_iter: 5",
                  "val_freq: 10",
                  "val_freq_megasamples: 1",
                  "manual_seed: 3",
                  "gen_lr_steps: [2]",
                  "lr_gamma: 0.5",
                  "restarts: [3]",
                  "restart_weights: [1]",
                  "clear_state: true",
                  "force_lr: 0.1",
                  "warmup_steps: 3",
                  "progressive_starts: [1]",
                  "T_period: [2]",
                  "warmup: 3",
                  "eta_min: 0.1",
                  "ema_rate: 0.9",
                  "ema_on_cpu: true",
                  "mod_batch_factor: 2",
                  "mod_batch_factor_every: 2",
                  "mod_batch_factor_also_disable_checkpointing: true",
                  "sort_key: k",
                  "auto_collate: true",
                  "batch_size_optimizer: {type: gradient_direction}"});
  check("logger",
        {"print_freq: 3", "save_checkpoint_freq: 3", "visuals: [gen]", "visual_debug_rate: 3",
         "recurrent_visual_indices: [1]", "is_mel_spectrogram: true", "reverse_n1_to_1: true",
         "reverse_imagenet_norm: true"});
  check("eval", {"pure: true", "injectors: {i: {type: direct, in: hq, out: o}}",
                 "evaluators: {e: {type: sr_fid, for: g}}", "output_state: gen",
                 "compute_psnr: true", "compute_fea: true"});
  check("path", {"strict_load: true", "resume_state: a.state", "optimizer_reset: true",
                 "pretrain_model_g: a.pth", "pretrain_base_path_g: net.", "alt_path: b", "root: r",
                 "log: l"});
  check("datasets/train", {"batch_size: 4",
                           "n_workers: 2",
                           "pin_memory: false",
                           "weights: [2]",
                           "scale: 2",
                           "target_size: 32",
                           "force_multiple: 8",
                           "center_crop_hq_sz: 64",
                           "corrupt_before_downsize: true",
                           "corrupt_before_downsize_factor: 2",
                           "fetch_alt_image: true",
                           "fetch_alt_tiled_image: true",
                           "skip_lq: true",
                           "disable_flip: true",
                           "rgb_n1_to_1: true",
                           "force_square: false",
                           "fixed_parameters: {a: 1}",
                           "all_image_color_jitter: 0.1",
                           "normalize: imagenet",
                           "labeler: {type: patch_labels}",
                           "fixed_corruptions: [jpeg]",
                           "random_corruptions: [jpeg]",
                           "num_corrupts_per_image: 1",
                           "corruption_blur_scale: 2",
                           "cosine_bias: false",
                           "random_seed: 3",
                           "eval: true",
                           "strict: true",
                           "needs_metadata: true",
                           "need_ref: true",
                           "ignore_first: 2",
                           "num_frames: 3"});
  check("datasets/val", {"batch_size: 4", "dataroot_GT_weights: [1]", "dataroot_LQ: b", "scale: 2",
                         "target_size: 32", "min_tile_size: 32", "fixed_size: true",
                         "tile_scale_normal_stddev: 0.2", "force_multiple: 8", "use_flip: true",
                         "use_rot: true", "use_blurring: true", "blur_magnitude: 3",
                         "use_compression_artifacts: true", "grayscale: true", "lq_noise: 5"});
  for (const char* mode :
       {"random_dataset", "single_image_extensible", "multi_frame_extensible", "paired_frame",
        "multiscale", "stylegan2", "zipfile", "torch_dataset", "byol_dataset",
        "byol_structured_dataset", "random_aug_wrapper", "combined", "gpt_tts"}) {
    check("datasets/train", {fmt::format("mode: {}", mode)});
  }
}

TEST_CASE("whole pictures of several sizes are measured one at a time, and in no batch") {
  const TranslatedConfig made = translate_dlas(parse_yaml(kBase, {"base", 0}));
  CHECK(made.config.find("eval/output_state") == nullptr);
  CHECK(flow_yaml(*made.config.find("eval/evaluators")) ==
        "{psnr: {type: psnr, real: hq, fake: hq}}");
  CHECK(flow_yaml(*made.config.find("log_ops")) == "[train/log_op]");
}

TEST_CASE("start_step stays, and force_start_step takes its place") {
  const auto start_of = [](const std::string& keys) {
    const TranslatedConfig made = translate_dlas(parse_yaml(kBase + keys, {"base", 0}));
    const Value* start = made.config.find("start_step");
    return start == nullptr ? Value() : *start;
  };
  CHECK(start_of("start_step: 0") == Value(0));
  CHECK(start_of("start_step: 500") == Value(500));
  CHECK(start_of("start_step: -1").is_null());
  CHECK(start_of("force_start_step: 7\nstart_step: 500") == Value(7));
  CHECK(start_of("start_step: 500\nforce_start_step: 7") == Value(7));
  CHECK(start_of("force_start_step: -1\nstart_step: 500").is_null());
}

TEST_CASE("parameters that an optimizer does not read are named, and left out") {
  const auto params_of = [](const std::string& optimizer) {
    Value config = parse_yaml(kBase, {"base", 0});
    Value::Map& step = config.find("steps/g")->as_map();
    step.set("optimizer", Value(optimizer));
    step.set("optimizer_params",
             parse_yaml("{lr: 0.1, momentum: 0.9, beta1: 0.5, beta2: 0.9}", {"base", 0}));
    const TranslatedConfig made = translate_dlas(config);
    std::string text = flow_yaml(*made.config.find("steps/g/optimizer_params"));
    for (const auto& [key, what] : made.notes) {
      if (key.starts_with("steps/g/optimizer_params/")) text += " " + key.substr(25) + ": " + what;
    }
    return text;
  };
  CHECK(params_of("sgd") ==
        "{lr: 0.1, momentum: 0.9} beta1: left out: sgd does not read it beta2: left out: sgd does "
        "not read it");
  CHECK(params_of("adamw") ==
        "{lr: 0.1, beta1: 0.5, beta2: 0.9} momentum: left out: adamw does not read it");
}

TEST_CASE("keys of a step and of train that nothing reads there are named, and left out") {
  Value config = parse_yaml(kBase, {"base", 0});
  config.find("steps/g")->as_map().set("optimizr", Value("lamb"));
  config.find("train")->as_map().set("warmup_itr", Value(int64_t{5}));
  const TranslatedConfig made = translate_dlas(config);
  CHECK(made.config.find("steps/g/optimizr") == nullptr);
  CHECK(made.config.find("train/warmup_itr") == nullptr);
  const std::string text = translated(config);
  CHECK(text.find("steps/g/optimizr: left out: nothing reads it there\n") != std::string::npos);
  CHECK(text.find("train/warmup_itr: left out: nothing reads it there\n") != std::string::npos);
}

TEST_CASE("keys of a dataset that is not here are named with it") {
  const TranslatedConfig made =
      translate_dlas(parse_yaml("datasets: {train: {mode: zipfile, path: a.zip, resolution: 32}}\n"
                                "networks: {}\nsteps: {}\ntrain: {niter: 1}\n",
                                {"a.yml", 0}));
  REQUIRE_FALSE(made.notes.empty());
  CHECK(made.notes.front().key == "datasets/train/mode");
  CHECK(
      made.notes.front().text.starts_with("zipfile has no counterpart, nor have path, "
                                          "resolution: `stepop list dataset`"));
}

}  // namespace from_dlas_keys_test
}  // namespace stepop
