#include "runtime/core/components/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

constexpr ForeignNames kNames[] = {
    // The length of the training.
    {"epochs n_epochs max_epoch */max_epochs */num_train_epochs", "num_epochs: 20", ""},
    {"steps iterations max_iter max_iters total_steps num_iterations */max_steps",
     "num_steps: 1000", ""},
    {"max_duration time_limit", "max_time: 3h50m", ""},
    {"limit_train_batches steps_per_epoch overfit_batches", "max_batches_per_epoch: 10", ""},
    {"fast_dev_run dry_run num_sanity_val_steps", "",
     "--check tries every op on one batch, -d is a run of 10 steps"},
    {"early_stopping early_stop early_stopping_patience patience",
     "stop_when: {metric: validation/eval_op/loss, mode: min, patience: 5}", ""},

    // Data.
    {"train_data train_dataset train_dataloader train_loader dataset data dataloader datamodule",
     "datasets: {train: {class: Synthetic, size: 1000}}", "`stepop list dataset` shows them"},
    {"val val_data val_dataset val_dataloader valid validation eval_dataset",
     "datasets: {validation: {class: Synthetic, size: 1000}}", "`stepop list dataset` shows them"},
    {"test test_data test_dataset", "datasets: {test: {class: Synthetic, size: 1000}}",
     "evaluations says when it is evaluated"},
    {"bs batchsize per_device_train_batch_size train_batch_size micro_batch_size */batch_size",
     "batch_size: 64", "{per_process: 64} is the size of each process"},
    {"per_device_eval_batch_size eval_batch_size val_batch_size validation_batch_size",
     "test_batch_size: 64", ""},
    {"*/num_workers */dataloader_num_workers */workers", "n_data_processes: 4", ""},
    {"*/prefetch_factor */prefetch", "n_prefetch: 2", ""},
    {"datasets/train/mode datasets/validation/mode", "",
     "did you mean \"class\"? `stepop list dataset` shows them"},
    {"*/dataroot */data_root", "",
     "a dataset of a folder has \"path\", of pairs \"folder\", below datasets/train"},
    {"*/crop_size", "",
     "a dataset of pairs has \"crop\", below datasets/train; of other pictures the augmentation "
     "{class: RandomCrop, size: 96} is for"},
    {"*/upsample_type", "", "did you mean \"upconv_type\", a key of a network?"},
    {"*/pin_memory */persistent_workers */dataloader_pin_memory", "",
     "stepop has no such choice; leave it out"},
    {"*/shuffle */sampler", "samplers: {train: shuffle}", "sequential is the dataset's own order"},
    {"*/drop_last */dataloader_drop_last", "drop_last: true", ""},
    {"error_on_timeout", "data_timeout: 60s", ""},
    {"code_root", "", "what `code` names is copied into the run by itself; leave it out"},
    {"fcond", "eval_filter: {from: 1000}", ""},
    {"hook_freq", "log_freq: 1000", "`when` of an op or a hook says its own time"},

    // The network and its training.
    {"model_class model_name model_type arch architecture net network backbone",
     "model: {class: NETWORK}", "`stepop list model` shows them"},
    {"task trainer_class lightning_module", "iterator: ITERATOR",
     "`stepop list iterator` shows them"},
    {"*/loss */criterion loss_fn objective", "iterator: ITERATOR",
     "the iterator computes the loss: `stepop list iterator`"},
    {"optim optimizer_name", "optimizer: {class: Adam}", "`stepop list optimizer` shows them"},
    {"lr base_lr */learning_rate", "optimizer: {lr: 0.001}", ""},
    {"weight_decay */wd", "optimizer: {weight_decay: 0.01}", ""},
    {"momentum", "optimizer: {class: SGD, momentum: 0.9}", ""},
    {"betas", "optimizer: {betas: [0.9, 0.999]}", ""},
    {"*/scheduler */lr_scheduler */lr_scheduler_type */lr_schedule",
     "optimizer: {lr: {class: cosine, from: 0.001, steps: 1000}}",
     "`stepop list schedule` shows all"},
    {"*/warmup_steps */warmup_ratio */num_warmup_steps",
     "optimizer: {lr: {class: warmup, to: 0.001, steps: 100}}", "`stepop list schedule` shows all"},
    {"accumulate_grad_batches gradient_accumulation_steps accumulation_steps grad_accum",
     "accumulate: 4", ""},
    {"*/gradient_clip_val */gradient_clip */gradient_clipping */max_grad_norm */clip_grad_norm "
     "*/clip_grad */grad_clip */clipnorm */clip */clip_gradients",
     "optimizer: {clip_norm: 1.0}", ""},
    {"*/clipvalue */clip_grad_value */gradient_clip_algorithm", "optimizer: {clip_value: 1.0}", ""},
    {"use_ema ema_decay", "ema: {decay: 0.999}", ""},
    {"swa_start swa_lrs", "swa: {from: 1}", ""},
    {"seed_everything manual_seed random_seed random_state rng_seed", "seed: 1", ""},
    {"detect_anomaly terminate_on_nan", "on_nan: stop", "skip leaves such updates out"},
    {"pretrained pretrained_path weights checkpoint_path load_from ckpt",
     "init_from: weights.safetensors", ""},
    {"resume_from_checkpoint ckpt_path resume resume_from", "init_from: weights.safetensors",
     "`stepop -p logs/RUN -t` resumes a run with all of its state, `--resume` the newest of a "
     "name"},

    // The device and the processes.
    {"accelerator gpu gpus n_gpu num_gpus gpu_ids devices cuda use_cuda", "device: auto",
     "cuda:1 is one GPU; processes: 2 uses several"},
    {"num_processes num_nodes world_size nproc_per_node strategy ddp", "processes: 1",
     "a launcher such as torchrun starts processes on several machines"},
    {"amp bf16 use_amp mixed_precision autocast dtype torch_dtype", "precision: bfloat16", ""},
    {"fp16 half", "precision: float16", ""},
    {"auto_find_batch_size device_train_microbatch_size microbatch_size", "on_out_of_memory: split",
     "`stepop tune --batch_size` measures what fits"},
    {"init_scale grad_scaler scaler initial_scale_power", "precision: float16",
     "it scales losses; loss_scale: {init_scale: 65536} is its first factor"},
    {"gradient_checkpointing", "checkpoint_modules: [\".\"]",
     "a regular expression for the paths of modules"},
    {"memory_format", "channels_last: true", ""},
    {"benchmark cudnn_benchmark_enabled cuda_benchmarking_enabled", "cudnn_benchmark: true", ""},
    {"allow_tf32 tf32 float32_matmul_precision", "matmul_precision: high", ""},
    {"cudnn_deterministic full_determinism use_deterministic_algorithms", "deterministic: true",
     ""},
    {"profiler", "", "--profile shows where the time of a training went"},

    // Evaluations, logs and checkpoints.
    {"val_freq val_every val_interval val_check_interval check_val_every_n_epoch eval_every "
     "eval_freq eval_interval eval_steps eval_strategy evaluation_strategy validation_freq",
     "eval_hook: {freq: 1e}", "1e is an epoch, 500 are steps"},
    {"limit_val_batches validation_steps", "eval_hook: {max_batches: 10}", ""},
    {"metric metrics compute_metrics", "eval_hook: {eval_callbacks: {matrix: confusion_matrix}}",
     "`stepop list callback` shows them"},
    {"callbacks", "eval_hook: {eval_callbacks: {matrix: confusion_matrix}}",
     "observers of the training go to hooks, early stopping is stop_when"},
    {"log_every log_every_n_steps log_interval log_steps logging_interval logging_steps print_freq",
     "log_freq: 100", ""},
    {"*/logger */loggers */report_to */wandb */wandb_project",
     "integrations: {wandb: {active: true}}", "also tensorboard, mlflow and csv"},
    {"tensorboard", "integrations: {tensorboard: {active: true}}", ""},
    {"mlflow", "integrations: {mlflow: {active: true}}", ""},
    {"save_every save_freq save_interval save_steps save_strategy checkpoint_freq "
     "every_n_train_steps every_n_epochs",
     "ckpt_freq: 500", "2e are two epochs"},
    {"save_top_k save_total_limit", "checkpoints: {keep_last: 3}",
     "checkpoints/keep_best of the best by checkpoints/metric stay as well"},
    {"monitor metric_for_best_model", "checkpoints: {metric: validation/eval_op/loss, mode: min}",
     "stop_when has a metric of its own"},
    {"load_best_model_at_end", "", "`stepop -p logs/RUN -c best` evaluates the best checkpoint"},
    {"output_dir default_root_dir log_dir logging_dir out_dir save_dir work_dir", "",
     "--logs FOLDER on the command line is the folder of new runs"},
    {"name run_name exp_name", "experiment_name: digits", "-n NAME does the same"},

    // The composition of configs.
    {"defaults extends _base_ base inherit inherits", "include: [base.yaml]",
     "names are relative to this file"},
    {"hydra", "", "`stepop sweep` trains with many values, --logs FOLDER is the folder of runs"},
    {"trainer training train", "", "the keys of a training are at the top level of the config"},
};

/// Foreign names of a component's `class`, as in `optimizer: {type: Adam}`.
constexpr std::string_view kClass[] = {"name",   "type",       "_target_",
                                       "target", "class_name", "class_path"};

/// Classes of Lightning, Keras and PyTorch that are keys here.
constexpr ForeignNames kClasses[] = {
    {"EarlyStopping", "stop_when: {metric: validation/eval_op/loss, mode: min, patience: 5}", ""},
    {"ModelCheckpoint Checkpoint CheckpointCallback",
     "checkpoints: {metric: validation/eval_op/loss, mode: min, keep_last: 1, keep_best: 3}",
     "ckpt_freq says how often"},
    {"LearningRateMonitor LearningRateLogger", "",
     "learning rates are logged by themselves, as runtime/<optimizer>/lr"},
    {"LearningRateScheduler LambdaLR MultiplicativeLR",
     "optimizer: {lr: {class: cosine, from: 0.001, steps: 1000}}",
     "`stepop list schedule` shows all"},
    {"ReduceLROnPlateau",
     "optimizer: {lr: {class: plateau, from: 0.001, metric: validation/eval_op/loss}}", ""},
    {"OneCycleLR", "optimizer: {lr: {class: one_cycle, max: 0.001, steps: 1000}}",
     "the momentum stays"},
    {"SequentialLR ChainedScheduler", "",
     "`chain` puts schedules one after another, `ramp` multiplies one by a warm-up"},
    {"GradientAccumulationScheduler", "accumulate: 4", ""},
    {"StochasticWeightAveraging", "swa: {from: 1}", ""},
    {"EMA EMACallback WeightAveraging EMAWeightAveraging SwapEMAWeights ExponentialMovingAverage",
     "ema: {decay: 0.999}", ""},
    {"BackboneFinetuning BaseFinetuning", "freeze: [{match: weight, until: 1}]", ""},
    {"TensorBoard TensorBoardLogger TensorBoardCallback",
     "integrations: {tensorboard: {active: true}}", ""},
    {"WandbLogger WandbCallback WandbMetricsLogger", "integrations: {wandb: {active: true}}", ""},
    {"MLFlowLogger MLflowCallback", "integrations: {mlflow: {active: true}}", ""},
    {"CSVLogger", "integrations: {csv: {active: true}}", ""},
    {"TerminateOnNaN", "on_nan: stop", "the default"},
    {"Timer", "max_time: 3h50m", ""},
    {"TQDMProgressBar RichProgressBar ProgressBar ProgbarLogger ProgressCallback", "",
     "a terminal has a progress bar by itself; leave it out"},
    {"DeviceStatsMonitor SystemMonitor", "hooks: [MachineLoad]", ""},
    {"OptimizerMonitor GradNormMonitor", "hooks: {layers: {class: LargestGradients, when: 500}}",
     ""},
    {"EarlyStopper ThresholdStopper",
     "hooks: {stop: {class: StopAt, metric: validation/eval_op/loss, below: 0.1}}", ""},
    {"ModelSummary RichModelSummary", "",
     "--check shows the parts of the network and their memory; leave it out"},
    {"LearningRateFinder LRFinder", "", "`stepop tune --lr` finds it"},
    {"BatchSizeFinder", "", "`stepop tune --batch_size` finds it"},
};

struct ForeignValue {
  std::string_view path;
  std::string_view values;  ///< Separated by spaces.
  std::string_view here;
};

constexpr ForeignValue kValues[] = {
    {"precision", "bf16 bf16-mixed bf16-true amp mixed", "bfloat16"},
    {"precision", "16 fp16 half 16-mixed 16-true", "float16"},
    {"precision", "32 fp32 float full no 32-true", "float32"},
    {"device", "gpu GPU CUDA Cuda", "cuda"},
    {"device", "CPU", "cpu"},
};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

const ForeignNames* find(const std::string& path) {
  const std::string anywhere = "*/" + path.substr(path.rfind('/') + 1);
  for (const auto& row : kNames) {
    if (has_word(row.names, path) || has_word(row.names, anywhere)) return &row;
  }
  return nullptr;
}

bool is_class(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash != std::string::npos && std::find(std::begin(kClass), std::end(kClass),
                                                 path.substr(slash + 1)) != std::end(kClass);
}

std::string class_beside(const std::string& path) {
  return path.substr(0, path.rfind('/')) + "/class";
}

struct Example {
  std::string key;
  Value value;
};

/// `optimizer/lr` and 1 from `optimizer: {lr: 1}`: maps with one key are parts of the path.
Example read_example(std::string_view yaml) {
  Example example{"", parse_yaml(std::string(yaml), {"", 0})};
  while (example.value.is_map() && example.value.as_map().size() == 1) {
    const auto [key, item] = *example.value.as_map().begin();
    example = {join_path(example.key, key), Value(item)};
  }
  return example;
}

/// The text of a row after `did you mean "KEY"`.
std::string more_of(const ForeignNames& row) {
  std::string text;
  const Value value = row.example.empty() ? Value() : read_example(row.example).value;
  const bool is_a_rename = value.is_null() || value.is_int() || value.is_float();
  if (!is_a_rename) text = fmt::format(" As in {}", row.example);
  if (!row.note.empty()) text += fmt::format("{} {}", is_a_rename ? "" : ";", row.note);
  return text;
}

}  // namespace

std::string ForeignNames::key() const { return example.empty() ? "" : read_example(example).key; }

std::span<const ForeignNames> foreign_names() { return kNames; }
std::span<const ForeignNames> foreign_classes() { return kClasses; }

std::string foreign_hint(const std::string& path, bool is_in_component) {
  if (is_in_component && is_class(path)) {
    return fmt::format("did you mean \"{}\"?", class_beside(path));
  }
  const ForeignNames* row = find(path);
  if (row == nullptr || row->key() == path) return "";
  if (row->example.empty()) return std::string(row->note);
  return fmt::format("did you mean \"{}\"?{}", row->key(), more_of(*row));
}

std::string foreign_class_hint(const std::string& name) {
  const auto* row = std::find_if(std::begin(kClasses), std::end(kClasses),
                                 [&](const auto& each) { return has_word(each.names, name); });
  if (row == std::end(kClasses)) return "";
  if (row->example.empty()) return std::string(row->note);
  return fmt::format("that is a key of the config here: {}{}{}", row->example,
                     row->note.empty() ? "" : "; ", row->note);
}

std::string foreign_name_of(const Config& config, const std::string& missing) {
  const Config root = config.root();
  const std::vector<std::string> paths = root.known_paths();
  const std::set<std::string> known(paths.begin(), paths.end());
  const auto message = [&](const std::string& path, const std::string& key,
                           const std::string& more) {
    const bool is_it = key == missing;
    return fmt::format("{}: {}did you mean \"{}\"{}?{}", root.where(path),
                       is_it ? "" : fmt::format("\"{}\" is missing; ", missing), key,
                       is_it ? ", which is missing" : "", more);
  };
  const size_t slash = missing.rfind('/');
  const std::string parent = slash == std::string::npos ? "" : missing.substr(0, slash);
  for (const std::string& place : {parent, std::string()}) {
    for (const auto& name : root.at(place).keys()) {
      const std::string path = join_path(place, name);
      // The same name in another place is an indentation error.
      if (known.contains(path) || missing.ends_with("/" + name)) continue;
      if (is_class(path) && missing == class_beside(path)) return message(path, missing, "");
      const ForeignNames* row = find(path);
      const std::string key = row == nullptr ? "" : row->key();
      if (key == missing || key.starts_with(missing + "/") || key == "include") {
        return message(path, key, more_of(*row));
      }
    }
  }
  return "";
}

std::string foreign_value_hint(std::string_view path, const Value& value) {
  const std::string text = value.is_text() ? value.as_text() : flow_yaml(value);
  for (const auto& row : kValues) {
    if (row.path == path && has_word(row.values, text)) {
      return fmt::format("; did you mean {}?", row.here);
    }
  }
  return "";
}

}  // namespace stepop
