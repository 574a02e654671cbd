// What is tortured: small trainings with all that could make a restart differ.
#include <fmt/format.h>

#include "tests/cli/torture.h"
#include "tests/places.h"

namespace stepop {
namespace {

constexpr int64_t kStepsOfDigits = 90;
constexpr int64_t kStepsOfVUNet = 40;
constexpr int64_t kStepsOfToySrgan = 50;
constexpr int64_t kStepsOfPix2Pix = 45;
constexpr int64_t kStepsOfFlow = 40;
constexpr int64_t kStepsOfAutoencoder = 40;

/// The folder of the data is put in.
constexpr const char* kDigits = R"(
model: !replace {{class: MLP, inputs: 64, hidden: [96, 48], dropout: 0.3}}
ema: {{decay: 0.95}}
eval_weights: ema
datasets:
  train: !replace
    class: Augment
    shift: 1
    noise: 0.1
    dataset: {{class: Idx, images: {0}/digits-train-images.idx.gz, labels: {0}/digits-train-labels.idx.gz}}
optimizer: !replace
  class: Adam
  clip_norm: 1
  lr: {{class: chain, parts: [{{schedule: {{class: warmup, to: 3e-3, steps: 20}}, steps: 20}}, {{schedule: {{class: cosine, from: 3e-3, steps: 70}}}}]}}
batch_size: 24
accumulate: 2
num_steps: {1}
num_threads: 1
n_data_processes: 2
start_log_freq: 2
log_freq: 8
ckpt_freq: 3
checkpoints: {{keep_last: 3, keep_best: 1, metric: validation/eval_op/a/accuracy, mode: max}}
stop_when: {{metric: validation/eval_op/a/accuracy, patience: 1000, mode: max}}
eval_hook:
  freq: 11
  eval_callbacks: {{a: accuracy, b: accuracy, c: accuracy, d: accuracy, e: accuracy, f: accuracy, g: accuracy, h: accuracy}}
)";

constexpr const char* kVUNet = R"(
model: {{spatial_size: 32, nf_start: 4, nf_max: 8}}
losses: {{KL: {{start_ramp_it: 5, end_ramp_it: 30}}}}
datasets:
  train: !replace {{class: Figures, size: 32, examples: 40, num_people: 10}}
  validation: !replace {{class: Figures, size: 32, examples: 20, num_people: 5, offset: 40}}
batch_size: 4
test_batch_size: 4
num_steps: {0}
num_epochs: !remove
optimizer: {{lr: {{steps: {0}}}}}
num_threads: 1
eval_mode: train
fixed_example_indices: {{validation: [0, 1, 2]}}
transfer_appearances: 3
log_freq: 8
log_ops: !replace [train/log_op, validation/log_op, {{op: validation/transfer_op, when: 15}}]
ckpt_freq: 3
checkpoints: {{keep_last: 3, keep_best: 1, metric: validation/eval_op/metrics/psnr, mode: max}}
eval_hook: {{freq: 11}}
)";

constexpr const char* kToySrgan = R"(
steps:
  discriminator: {{after: 15, every: 2}}
  generator: {{losses: {{gan_g: {{after: 15}}}}}}
train: {{gen_lr_steps: !replace [20, 40]}}
eval: {{output_state: !replace [gen, hq]}}
datasets:
  validation: {{class: RandomTensors, size: 20, tensors: {{hq: [3, 16, 16], lq: [3, 8, 8]}}}}
ema: {{decay: 0.95}}
num_steps: {0}
num_threads: 1
log_freq: 4
log_ops: [train/log_op, validation/log_op, {{op: train/visuals_op, when: 5}}, {{op: validation/visuals_op, when: 15}}]
ckpt_freq: 3
checkpoints: {{keep_last: 3, keep_best: 1, metric: validation/eval_op/a/psnr, mode: max}}
eval_hook:
  freq: 11
  eval_callbacks:
    a: &metrics {{class: image_metrics, prediction: gen, target: hq, data_range: 1}}
    b: *metrics
    c: *metrics
)";

constexpr const char* kPix2Pix = R"(
networks:
  generator: {{input_size: 32, features: 4, use_dropout_layers: 2}}
  discriminator: {{base_channels: 4}}
datasets:
  train: {{size: 32, examples: 40}}
  validation: {{size: 32, examples: 20}}
losses: {{G_L1: {{weight: {{class: linear, from: 100, to: 10, start: 10, steps: 30}}}}}}
image_pool: 5
label_smoothing: 0.1
generator_optimizer: {{lr: {{start: 20, steps: 20}}}}
test_batch_size: 4
num_steps: {0}
num_threads: 1
log_freq: 8
ckpt_freq: 3
checkpoints: {{keep_last: 3, keep_best: 1}}
eval_hook: {{freq: 11}}
)";

constexpr const char* kFlow = R"(
model:
  network: {{hidden_size: 16, depth: 1, num_heads: 2}}
  steps: 2
batch_size: 24
num_steps: {0}
num_threads: 1
n_data_processes: 0
sampling: {{digits: {{count: 1, when: 7}}}}
log_freq: 8
ckpt_freq: 3
checkpoints: {{keep_last: 3, keep_best: 1, metric: validation/eval_op/loss, mode: min}}
eval_hook:
  freq: 11
  eval_callbacks: {{a: histogram, b: histogram, c: histogram}}
)";

constexpr const char* kAutoencoder = R"(
ratios: !replace [3, 2]
model:
  autoencoder: {{base_channels: 4}}
  adversarial_weight: {{start: 10, steps: 20}}
batch_size: 24
num_steps: {0}
num_threads: 1
n_data_processes: 0
sampling: {{reconstructions: {{count: 1, when: 7}}, new: null}}
log_freq: 8
ckpt_freq: 3
checkpoints: {{keep_last: 3, keep_best: 1, metric: validation/eval_op/loss, mode: min}}
eval_hook:
  freq: 11
  eval_callbacks: {{a: histogram, b: histogram, c: histogram}}
)";

}  // namespace

const Torture& torture_of_digits() {
  static const Torture torture{
      .configs = {"digits.yaml"},
      .yaml = fmt::format(kDigits, STEPOP_SOURCE_DIR "/configs/data", kStepsOfDigits),
      .steps = kStepsOfDigits,
      .workers = 2};
  return torture;
}

const Torture& torture_of_vunet() {
  static const Torture torture{.configs = {"vunet/base.yaml", "vunet/small.yaml"},
                               .yaml = fmt::format(kVUNet, kStepsOfVUNet),
                               .steps = kStepsOfVUNet,
                               .workers = 1};
  return torture;
}

const Torture& torture_of_toy_srgan() {
  static const Torture torture{.configs = {"extensible/toy_srgan.yaml"},
                               .yaml = fmt::format(kToySrgan, kStepsOfToySrgan),
                               .steps = kStepsOfToySrgan,
                               .workers = 0};
  return torture;
}

const Torture& torture_of_pix2pix() {
  static const Torture torture{.configs = {"pix2pix/base.yaml", "pix2pix/small.yaml"},
                               .yaml = fmt::format(kPix2Pix, kStepsOfPix2Pix),
                               .steps = kStepsOfPix2Pix,
                               .workers = 1};
  return torture;
}

const Torture& torture_of_flow() {
  static const Torture torture{.configs = {"trainer/flow_digits.yaml"},
                               .yaml = fmt::format(kFlow, kStepsOfFlow),
                               .steps = kStepsOfFlow,
                               .workers = 0};
  return torture;
}

const Torture& torture_of_autoencoder() {
  static const Torture torture{.configs = {"trainer/adversarial_vae.yaml"},
                               .yaml = fmt::format(kAutoencoder, kStepsOfAutoencoder),
                               .steps = kStepsOfAutoencoder,
                               .workers = 0};
  return torture;
}

}  // namespace stepop
