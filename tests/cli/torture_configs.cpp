// What is tortured: small trainings with all that could make a restart differ.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cli/torture.h"
#include "tests/places.h"

namespace stepop {
namespace {

constexpr const char* kDigits = R"(
model: !replace {{class: MLP, inputs: 64, hidden: [96, 48], dropout: 0.3}}
ema: {{decay: 0.95}}
eval_weights: ema
datasets:
  train: !replace
    class: Augment
    shift: 1
    noise: 0.1
    dataset: {{class: Idx, images: {1}/digits-train-images.idx.gz, labels: {1}/digits-train-labels.idx.gz}}
optimizer: !replace
  class: Adam
  clip_norm: 1
  lr: {{class: chain, parts: [{{schedule: {{class: warmup, to: 3e-3, steps: 20}}, steps: 20}}, {{schedule: {{class: cosine, from: 3e-3, steps: 70}}}}]}}
batch_size: 24
accumulate: 2
num_steps: {0}
num_threads: 1
n_data_processes: 2
data_timeout: 60s  # with it, workers prepare quick batches as well
start_log_freq: 2
log_freq: 8
ckpt_freq: 3
checkpoints: {{keep_last: 3, keep_best: 1, metric: validation/eval_op/a/accuracy, mode: max}}
stop_when: {{metric: validation/eval_op/a/accuracy, patience: 80s, mode: max}}
eval_hook:
  freq: 11
  eval_callbacks: {{a: accuracy, b: accuracy, c: accuracy, d: accuracy, e: accuracy, f: accuracy, g: accuracy, h: accuracy}}
)";

/// Beside kDigits.
constexpr const char* kProcesses = R"(
processes: 2
distributed: {{shard_optimizer: true}}
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
data_timeout: 60s
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
data_timeout: 60s
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

/// `{0}` in `yaml` is the number of steps, `{1}` the folder of the data.
Torture torture_of(std::vector<std::string> configs, std::string_view yaml, int64_t steps,
                   int workers) {
  return {.configs = std::move(configs),
          .yaml = fmt::format(fmt::runtime(yaml), steps, STEPOP_SOURCE_DIR "/configs/data"),
          .steps = steps,
          .workers = workers};
}

}  // namespace

Torture torture_of_digits() { return torture_of({"digits.yaml"}, kDigits, 90, 2); }

Torture torture_of_processes() {
  const std::string config = std::string(kDigits) + kProcesses;
  Torture torture = torture_of({"digits.yaml"}, config.c_str(), 90, 1);
  torture.processes = 2;
  return torture;
}

Torture torture_of_vunet() {
  return torture_of({"vunet/base.yaml", "vunet/small.yaml"}, kVUNet, 40, 1);
}

Torture torture_of_toy_srgan() {
  return torture_of({"extensible/toy_srgan.yaml"}, kToySrgan, 50, 0);
}

Torture torture_of_pix2pix() {
  return torture_of({"pix2pix/base.yaml", "pix2pix/small.yaml"}, kPix2Pix, 45, 1);
}

Torture torture_of_flow() { return torture_of({"trainer/flow_digits.yaml"}, kFlow, 40, 0); }

Torture torture_of_autoencoder() {
  return torture_of({"trainer/adversarial_vae.yaml"}, kAutoencoder, 40, 0);
}

}  // namespace stepop
