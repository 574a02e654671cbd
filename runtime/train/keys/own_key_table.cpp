// The rows of the table (own_keys.h).
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/keys/own_keys.h"

namespace stepop {
namespace {

/// Far beyond any training, and no sum of two such numbers overflows.
constexpr double kMostSteps = 1e18;
constexpr unsigned kNoCost = kSameCost | kNotInSteps;

/// The words of ParameterType.
ParameterType kind(std::string words, Range range = {}) {
  return {.kind = std::move(words), .range = range};
}

ParameterType names(std::vector<std::string> choices) {
  return {.kind = "text", .choices = std::move(choices)};
}

const OwnKey kKeys[] = {
    // The parts of a run.
    {"code", kind("text | list of text"), "-",
     "your own sources and libraries: `[denoiser.cpp, libmine.so]`. Each source is compiled when "
     "it or a header of yours that it includes changed; then all are loaded"},
    {"code_flags", kind("list of text"), "-",
     "flags for the compiler and the linker of these sources: `[-I/opt/x/include, -lx]`"},
    {"iterator", kind("component iterator"), "required", "`stepop list iterator` shows them"},
    {"datasets/*", kind("component dataset"), "-",
     "a split's examples. `train` is trained, `validation` is evaluated; without a validation "
     "split nothing is evaluated. `stepop list dataset` shows them"},
    {"class_names/*", kind("list of text"), "those of datasets/train",
     "by the key of an example: the names of its classes in the order of their numbers, of every "
     "split. The readers of `datasets/train` write them here, sorted"},
    {"model", kind("component model"), "-", "the network; `stepop list model` shows them"},
    {"networks/*", kind("component model"), "-",
     "in place of `model`: several networks with names"},
    {"optimizer", kind("component optimizer"), "-",
     "`Adam`, `SGD`, `Muon` and more, with `lr`, `weight_decay`, `clip_norm`, `groups`, ...; "
     "`stepop list optimizer` shows them",
     kForTraining},
    {"init_from", kind("path | map | list"), "-",
     "weights to begin with: a safetensors, `.pt`, `.pth`, `.ckpt` or `.bin` file, or `{path, "
     "prefix, map, network, strict, optimizer}`, or a list of such. Without `-t`: weights to "
     "evaluate, "
     "`stepop -b x.yaml --init_from weights.pt`",
     kSameCost},
    {"hooks", kind("map | list"), "-",
     "observers of the training, in their order: `{name: {class: MyHook}}` or `[MyHook]`",
     kForTraining},
    {"hooks/*", kind("component hook"), "-", "an observer; null switches it off", kForTraining},
    {"hooks/*/when", kind("time"), "every step",
     "the steps in which it gets `before_step`, `before_batch`, `after_batch` and `after_step`",
     kForTraining},

    // Batches.
    {"batch_size", kind("int | map", at_least(1)), "required",
     "in training steps and logs, of all processes together. `{per_process: 64}`: 64 in each of "
     "[several processes](../runtime/train/distributed/README.md)"},
    {"test_batch_size", kind("int | map", at_least(1)), "= batch_size",
     "in evaluations, of each process", kSameCost},
    {"max_batches_per_epoch", kind("int", at_least(1)), "-",
     "end an epoch after so many batches, of a stream without leaving anything out", kForTraining},
    {"drop_last", kind("bool"), "false", "drop an epoch's smaller last batch", kForTraining},
    {"accumulate", kind("int", at_least(1).at_most(kMostSteps)), "1", "batches in a training step",
     kForTraining},
    {"on_out_of_memory", names({"stop", "split"}), "stop",
     "`split`: when memory runs out in a training step, the training goes back to its last "
     "checkpoint and trains each batch in two parts, or four, ..., whose gradients add up to the "
     "same. Resumes keep the number. In one process",
     kForTraining},
    {"samplers/*", kind("component sampler"), "shuffle",
     "by split: the order of the examples that steps and logs see, and with `lengths` which share "
     "a batch; evaluations use the dataset's order"},
    {"fixed_example_indices/*", kind("list of int"), "`batch_size` at random, of one process",
     "by split: indices of the batch that `get_fixed_examples` returns", kSameCost},
    {"n_data_processes", kind("int", at_least(0)), "half of the cores",
     "loader threads, which start when a batch takes more than 50 us and a twentieth of a step",
     kSameBits | kTuned},
    {"n_prefetch", kind("int", at_least(1).at_most(1024)), "2",
     "how many batches each loader thread prepares ahead", kSameBits | kTuned},
    {"data_timeout", kind("clock"), "-",
     "`60s`: an example that takes longer to load ends the run, with its split and index. With "
     "`n_data_processes: 0` a thread loads one batch at a time, while the training waits",
     kSameBits},
    {"data_checksums", names({"size", "content", "none"}), "size",
     "what is recorded of the data's files: names, sizes and times; `content`: every byte as well, "
     "read beside the training",
     kSameCost | kSameBits},

    // The length of a training.
    {"num_epochs", kind("number"), "-", "when training ends; `num_epochs` or `num_steps` is needed",
     kForTraining | kNoCost},
    {"num_steps", kind("int", at_least(1).at_most(kMostSteps)), "-",
     "the same in steps, which wins", kForTraining | kSameCost},
    {"stop_when", kind("map"), "-",
     "early stopping: the training ends when the metric has not improved during the patience",
     kForTraining | kNoCost},
    {"stop_when/metric", kind("text"), "required",
     "the number, by its name in `metrics.jsonl`: `validation/eval_op/accuracy/accuracy`"},
    {"stop_when/mode", names({"max", "min"}), "required", "which of its values is the best"},
    {"stop_when/patience", kind("span"), "required",
     "how many values of the metric in a row that are not better: `3`; or how long: `5e`"},
    {"stop_when/min_delta", kind("number", at_least(0)), "0",
     "by how much more the metric has to improve"},
    {"max_time", kind("clock"), "-",
     "`3h50m`, `45s`: the training saves and ends when its process is that old",
     kNoCost | kSameBits},
    {"stop_at", kind("int", at_least(1)), "-",
     "the training saves and ends after this step, as at a signal; a resume with `--stop_at null` "
     "continues",
     kForTraining | kNoCost | kSameBits},
    {"on_nan", names({"stop", "skip", "ignore"}), "stop",
     "what an update does whose loss or gradients are NaN or infinite: `stop` the run, `skip` the "
     "update, `ignore` it",
     kForTraining},

    // What runs in a step.
    {"train_ops", kind("list of op"), "[train/train_op]",
     "what runs in each step, in order; `{op: train/train_op/generator, when: 5}` runs in every "
     "fifth",
     kForTraining},
    {"stages", kind("list"), "-",
     "in place of `train_ops`: stages that follow one another, `[{train_ops: "
     "[train/train_op/critic], for: 5}, {train_ops: [train/train_op/generator], for: 1}]`. They "
     "begin again after the last, unless that lacks `for` and lasts to the end",
     kForTraining},
    {"stages/*/train_ops", kind("list of op"), "required", "the train ops of a stage",
     kForTraining},
    {"stages/*/for", kind("span"), "to the end", "the length of a stage, in steps or epochs",
     kForTraining},
    {"freeze", kind("list"), "-",
     "parameters that are not trained for a time: `[{match: \"^model\\\\.encoder\", until: 5e}]`; "
     "[batch normalization](../runtime/train/loop/README.md) keeps moving",
     kForTraining},
    {"freeze/*/match", kind("regex"), "required",
     "a [regular expression](#names-of-parameters) for the names of parameters", kForTraining},
    {"freeze/*/from", kind("span"), "0", "the first step or epoch without training", kForTraining},
    {"freeze/*/until", kind("span"), "the end", "where training begins again", kForTraining},

    // Averages of weights.
    {"ema/decay", kind("schedule"), "0.999",
     "`ema: {decay: 0.999}` averages weights. The decay may be a schedule, such as `{class: "
     "power_law, max: 0.9999, update_after_step: 100}` as in ema_pytorch"},
    {"ema/warmup", kind("bool"), "false", "the decay begins small"},
    {"ema/networks", kind("list of text"), "all that are trained", "which networks are averaged"},
    {"ema/on_cpu", kind("bool"), "false",
     "the averages are in the host's memory, and take the weights in every tenth step"},
    {"swa", kind("map"), "-",
     "`swa: {from: 5e, every: 1e}`: stochastic weight averaging, the equal average of snapshots"},
    {"swa/from", kind("span"), "-", "the first snapshot"},
    {"swa/every", kind("span"), "1e", "the time between two snapshots"},
    {"swa/until", kind("span"), "-", "no snapshot is taken later"},
    {"swa/grow", kind("number"), "1",
     "by how much each of these times is longer than the one before"},
    {"swa/up_to", kind("span"), "-", "the longest of these times"},
    {"swa/networks", kind("list of text"), "all that are trained", "which networks are averaged"},
    {"swa/batch_norm_batches", kind("int", at_least(0)), "0: an epoch",
     "over how many training batches the statistics of batch normalization are measured for that "
     "average"},
    {"eval_weights", names({"model", "ema", "swa"}), "model",
     "the weights of evaluations; `ema`, `swa`: these averages. With `ScheduleFreeAdamW`: `ema`"},

    // Logs.
    {"log_freq", kind("time"), "1000",
     "the log interval starts at `start_log_freq` and doubles up to `log_freq`; the last step is "
     "logged as well",
     kForTraining | kSameCost},
    {"start_log_freq", kind("int", at_least(1)), "1", "the first log interval",
     kForTraining | kSameCost},
    {"log_ops", kind("list of op"),
     "[train/log_op, validation/log_op], of these what the iterator has",
     "what is logged beside the numbers that train ops return; `[]`: these alone; `{op: "
     "validation/sample_op, when: 500, images: {format: jpeg}}` has its own time and format of "
     "images",
     kForTraining | kSameCost},
    {"log_images/format", names({"png", "jpeg"}), "png", "how the images of logs become files",
     kForTraining | kSameCost},
    {"log_images/quality", kind("int", at_least(1).at_most(100)), "90", "of a JPEG",
     kForTraining | kSameCost},
    {"telemetry/active", kind("bool"), "true",
     "learning rates, norms of gradients, speed and memory are logged as `runtime/...`: "
     "[runtime/core/log](../runtime/core/log/README.md)",
     kForTraining | kSameCost},
    {"telemetry/weights", kind("time"), "-", "when histograms of weights are logged: `1e`",
     kForTraining | kSameCost},
    {"telemetry/gradients", kind("time"), "-", "when histograms of gradients are logged: `500`",
     kForTraining | kSameCost},
    {"telemetry/parameters", kind("regex"), "all",
     "a [regular expression](#names-of-parameters) for the names of the parameters in histograms",
     kForTraining | kSameCost},
    {"integrations/*", kind("map"), "-",
     "`{tensorboard: {active: true}}`, also `csv`, `wandb` and `mlflow`, with [keys of their "
     "own](../runtime/core/log/README.md#weights--biases-mlflow); `stepop list integration` shows "
     "them. Not with `-d`, unless `debug/disable_integrations` is false",
     kForTraining | kNoCost | kSameBits},

    // Checkpoints.
    {"ckpt_freq", kind("time"), "-",
     "further checkpoints, besides the one after each epoch, at the end and at a signal: `500`, "
     "`2e`, `10m`",
     kForTraining | kNoCost},
    {"ckpt_zero", kind("bool"), "false", "a checkpoint before the first step",
     kForTraining | kNoCost},
    {"checkpoints", kind("map"), "-", "which checkpoints stay, and what `best` is",
     kForTraining | kNoCost},
    {"checkpoints/metric", kind("text"), "-",
     "the number, by its name in `metrics.jsonl`, that says which checkpoint is `best`"},
    {"checkpoints/mode", names({"max", "min"}), "-", "which of its values is the best"},
    {"checkpoints/keep_last", kind("int", at_least(0)), "0: all",
     "how many of the newest checkpoints stay"},
    {"checkpoints/keep_best", kind("int", at_least(1)), "1",
     "how many of the best by `metric` stay as well"},
    {"checkpoints/keep_every", kind("time"), "-",
     "the first checkpoint of each such period stays for good: `1000`, `10e`"},

    // Evaluations.
    {"eval_hook", kind("map"), "-", "the evaluation of a training; null switches it off",
     kSameCost},
    {"eval_hook/eval_op", kind("text"), "validation/eval_op", "what is evaluated"},
    {"eval_hook/freq", kind("time"), "1e", "when; always also at the end"},
    {"eval_hook/eval_callbacks", kind("map"), "the iterator's",
     "what looks at the outputs: name -> callback, or a list of callbacks"},
    {"eval_hook/eval_callbacks/*", kind("component callback"), "-",
     "a callback, or the path of a Python script; null switches one off. `stepop list callback` "
     "shows them"},
    {"eval_hook/name", kind("text"), "-",
     "without `-t`: the evaluation's own name and folder; also `-n`", kForEvaluation},
    {"eval_hook/max_batches", kind("int", at_least(0)), "0: all",
     "only so many batches of the split are evaluated"},
    {"eval_hook/compression", names({"none", "gzip"}), "none",
     "of the outputs; every HDF5 reader can read `gzip`"},
    {"eval_hook/clean_after_callbacks", kind("bool"), "false",
     "remove the outputs once the callbacks ran"},
    {"eval_pipeline/callback_kwargs/*", kind("any"), "-", "parameters of a callback, by its name",
     kSameCost},
    {"evaluations", kind("map"), "-",
     "further evaluations with the keys of `eval_hook`: `{test: {eval_op: test/eval_op, freq: 5e}, "
     "fast: {freq: 100, max_batches: 10}}`; null switches one off. Their numbers are "
     "`<name>/loss`, their files in a folder `<name>` within that of the step",
     kNoCost},
    {"evaluations/*/eval_op", kind("text"), "validation/eval_op", "as in `eval_hook`"},
    {"evaluations/*/freq", kind("time"), "1e", "as in `eval_hook`"},
    {"evaluations/*/eval_callbacks", kind("map"), "the iterator's", "as in `eval_hook`"},
    {"evaluations/*/eval_callbacks/*", kind("component callback"), "-", "as in `eval_hook`"},
    {"evaluations/*/max_batches", kind("int", at_least(0)), "0: all", "as in `eval_hook`"},
    {"evaluations/*/compression", names({"none", "gzip"}), "none", "as in `eval_hook`"},
    {"evaluations/*/clean_after_callbacks", kind("bool"), "false", "as in `eval_hook`"},
    {"eval_functor", kind("component functor"), "-",
     "without `-t`: evaluates in another way than the iterator, with its own callbacks: `Predict`. "
     "The iterator is built as well, since the checkpoint has its networks and weights",
     kForEvaluation | kSameCost},
    {"eval_all", kind("bool"), "false",
     "with `-p RUN` and without `-t`: every checkpoint is evaluated", kForEvaluation | kSameCost},
    {"eval_forever", kind("bool"), "false",
     "the same, and each checkpoint that a training writes from now on, until a signal or "
     "`max_time`",
     kForEvaluation | kSameCost},
    {"eval_filter", kind("map"), "all",
     "which checkpoints these two take: `{steps: [100, 200], from: 1000, until: 9000, match: "
     "\"00$\", where: validation/eval_op/loss < 0.5}`",
     kForEvaluation | kSameCost},
    {"eval_filter/steps", kind("list of int"), "all", "the steps themselves"},
    {"eval_filter/from", kind("int", at_least(0)), "0", "the first step"},
    {"eval_filter/until", kind("int", at_least(0)), "-", "the last step"},
    {"eval_filter/match", kind("regex"), "all", "an expression for the names of checkpoints"},
    {"eval_filter/where", kind("text | list of text"), "all", "conditions on their numbers"},
    {"run_ahead", kind("span"), "-",
     "the training waits when it is so far ahead of the evaluations of `eval_forever`: `1000`, "
     "`2e`",
     kForTraining | kNoCost | kSameBits},

    // How it is computed.
    {"experiment_name", kind("text"), "run",
     "the end of the name of a new run's folder, where `-n` does not give it",
     kSameCost | kSameBits},
    {"seed", kind("int", at_least(0)), "1", "of weights, order, dropout", kSameCost},
    {"device", kind("text"), "auto", "`cpu`, `cuda`, `cuda:1`"},
    {"num_threads", kind("int", at_least(1)), "LibTorch's",
     "with `--processes` the threads are shared out: cores / processes each. The time of a step "
     "depends on it, on `onednn` and on `precision`: [`stepop "
     "tune`](../runtime/tools/tune/README.md) tries them",
     kTuned},
    {"onednn",
     {.kind = "bool", .choices = {"auto"}},
     "auto",
     "whether LibTorch computes with oneDNN. `auto`: not where the convolutions of a batch are [so "
     "small](../runtime/tools/tune/README.md#small-convolutions) that they are faster "
     "without; a resume keeps what the run began with",
     kTuned},
    {"flush_denormals", kind("bool"), "LibTorch's: false",
     "true: numbers below 1.2e-38 count as 0. Gradients that come so far down make a step several "
     "times slower on many processors; values differ by no more",
     kTuned},
    {"thread_wait", names({"auto", "sleep", "brief", "spin"}), "auto",
     "how threads that compute wait for their next work. `auto`: looking for it, as long as "
     "nothing else wants their cores, else as `brief`; `sleep`: at once without the core; `brief`: "
     "after some microseconds; `spin`: looking for it, whatever else there is. Without the key the "
     "environment's `OMP_WAIT_POLICY` and `GOMP_SPINCOUNT` count. For other values than `auto` a "
     "training starts itself again",
     kTuned},
    {"processes", kind("int", at_least(1)), "1",
     "so many processes of this machine share the work, as with `--processes`, which wins; where a "
     "launcher starts them, it decides",
     kTuned},
    {"precision", names({"float32", "bfloat16", "float16"}), "float32",
     "of convolutions and matrix products, by LibTorch's autocast, in `step_op` and all ops. "
     "Weights, gradients and optimizers stay float32. `float16` scales losses, as its numbers end "
     "at 65504 and at 6e-8",
     kTuned},
    {"loss_scale/init_scale", kind("number", at_least(1)), "65536",
     "with `precision: float16`: the first factor of the losses. Infinite gradients leave an "
     "update out and halve it, without a word; it is logged as `runtime/optimizer/loss_scale`"},
    {"loss_scale/growth_interval", kind("int", at_least(1)), "2000",
     "after so many updates without infinite gradients the factor doubles"},
    {"checkpoint_modules", kind("regex | list of regex"), "-",
     "modules that keep only their inputs for the backward pass, which runs them again: less "
     "memory, more time, the same bits. Regular expressions for their paths, as in "
     "[`\"decoder.*\"`](../runtime/train/networks/README.md)",
     kForTraining | kSameBits},
    {"float32_modules", kind("regex | list of regex"), "-",
     "modules that compute in float32 whatever `precision` says. Regular expressions for their "
     "paths, as in [`\"decoder.*\"`](../runtime/train/networks/README.md)"},
    {"channels_last", kind("bool"), "false",
     "true: images in batches and the weights of convolutions have their channels last in memory. "
     "Shapes stay the same; values differ by rounding",
     kTuned},
    {"matmul_precision", names({"highest", "high", "medium"}), "LibTorch's: highest",
     "of products of float32 matrices, as torch.set_float32_matmul_precision: `high` computes them "
     "on a GPU in TF32, with 10 bits of the 23 behind the point, several times faster"},
    {"cudnn_benchmark", kind("bool"), "LibTorch's: false",
     "true: cuDNN tries its algorithms for each new shape of a convolution and keeps the fastest, "
     "as torch.backends.cudnn.benchmark. For batches of one shape; bits may differ between starts",
     kTuned},
    {"cuda_graph", kind("bool"), "false",
     "true: `step_op`, the losses and their backward passes are captured after three steps as a "
     "graph of the GPU, which later steps launch as a whole, with the same bits: for steps that "
     "wait for their kernels to be launched. [What cannot be "
     "captured](../runtime/train/step/README.md#a-step-as-a-graph) is refused",
     kForTraining | kSameBits | kTuned},
    {"deterministic", kind("bool"), "LibTorch's: false",
     "true: only algorithms that give the same bits each time, on a GPU as well; an operation "
     "without one is an error"},
    {"distributed/backend", names({"gloo", "nccl"}), "gloo",
     "what carries tensors of GPUs between processes: `gloo` by way of the host's memory, `nccl` "
     "directly, while the backward pass runs. `nccl` needs a LibTorch with CUDA and a GPU for each "
     "process; between several GPUs it was not tried"},
    {"distributed/bind", kind("bool"), "false",
     "each process keeps to its share of its machine's processors. Faster where steps are short "
     "and nobody else uses the machine; slower where somebody does"},
    {"distributed/timeout", kind("clock"), "5m",
     "a process that others wait for longer than this counts as hanging, and ends the training; "
     "work of rank 0 alone, such as callbacks, may take longer"},
    {"distributed/shard_optimizer", kind("bool"), "false",
     "each process keeps the optimizer's state of its share of the parameters alone, and updates "
     "these (ZeRO, stage 1): less memory, a message more a step"},
    {"distributed/sync_batch_norm", kind("bool"), "false",
     "true: batch normalization in training by the examples of all processes"},
    {"debug/max_steps", kind("int", at_least(1)), "10", "the training steps of `-d`", kSameCost},
    {"debug/max_examples", kind("int", at_least(1)), "5 batches",
     "the examples that `-d` evaluates", kSameCost},
    {"debug/disable_integrations", kind("bool"), "true", "`-d` uses none of the integrations",
     kSameCost},
    {"extra", kind("any"), "-",
     "your own notes, and values that several keys share: `extra: {lr: 1e-4}`, `lr: "
     "\"{extra/lr}\"`",
     kSameCost | kSameBits},
    {"include", kind("text | list of text"), "-",
     "config files that this one is laid over, relative to it: `[base.yaml]`"},
};

}  // namespace

std::span<const OwnKey> own_keys() { return kKeys; }

}  // namespace stepop
