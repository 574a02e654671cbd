#include "runtime/train/checks/plan_warnings.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <thread>

#include "tests/runtime/train/distributed/together.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace plan_warnings_test {

/// The warnings at the start of a training; without the name of the file.
std::string warnings_of(const std::string& config, bool debug = false) {
  std::string text = Session(test_config(config), true, debug, false).warnings();
  const std::string file = "test.yaml:";
  for (size_t at = text.find(file); at != std::string::npos; at = text.find(file)) {
    text.erase(at, text.find(": ", at) + 2 - at);
  }
  return text;
}

/// A training of 8 steps, two epochs, with `now` in the place of `usual`.
std::string with(const std::string& usual, const std::string& now, const std::string& more = "") {
  std::string config = trainer_config("num_steps: 8\n" + more);
  return config.replace(config.find(usual), usual.size(), now);
}

const std::string kRate = "{class: cosine, from: 1e-2, to: 1e-4, steps: 12}";

std::string warnings(const std::string& more, const std::string& lr = "1e-3", bool debug = false) {
  return warnings_of(with(kRate, lr, more), debug);
}

TEST_CASE("a config that says what it means has no warning") {
  CHECK(warnings("") == "");
  CHECK(warnings("log_ops: [{op: train/log_op, when: {every: 50, at_end: true}}]\n"
                 "ckpt_freq: 8\nswa: {from: 2e}\nema: {decay: 0.9}\neval_weights: swa\n"
                 "telemetry: {weights: 10m, parameters: norm}\n"
                 "freeze: [{match: norm, from: 7, until: 50e}]\n"
                 "stages: [{train_ops: [train/train_op], for: 7}, {train_ops: [train/train_op]}]\n"
                 "checkpoints: {metric: validation/eval_op/loss, mode: min}\n"
                 "stop_when: {metric: validation/eval_op/odd, mode: max, patience: 1e}") == "");
}

TEST_CASE("a learning rate that is 0 in the whole training is reported") {
  CHECK(warnings("", "0") ==
        "optimizer/lr: 0 in all of this training of 8 steps: no weight changes");
  CHECK(warnings("", "{class: constant, value: 0}") ==
        "optimizer/lr: 0 in all of this training of 8 steps: no weight changes");
  CHECK(warnings("", "{class: warmup, to: 1, steps: 4}") == "");
  // A group of its own may be held.
  std::string config = trainer_config("num_steps: 8");
  const std::string usual = "lr: {class: cosine, from: 1e-2, to: 1e-4, steps: 12}";
  config.replace(config.find(usual), usual.size(), "groups: [{match: bias, lr: 0}]");
  CHECK(Session(test_config(config), true, false, false).warnings() == "");
}

TEST_CASE("numbers of an optimizer that nobody means are reported") {
  const auto optimizer = [](const std::string& text) {
    return warnings_of(with("{class: Adam, lr: " + kRate + "}", text));
  };
  CHECK(optimizer("{class: Adam, lr: 0.1}") == "");
  CHECK(optimizer("{class: SGD, lr: 10, momentum: 0.9, weight_decay: 5e-4}") == "");
  CHECK(optimizer("{class: LARS, lr: 30}") == "");
  CHECK(optimizer("{class: AdamW, lr: 1e-3, betas: [0.5, 0.9], eps: 0.1, weight_decay: 0.3, "
                  "clip_norm: 0.01}") == "");
  CHECK(optimizer("{class: Adam, lr: 100}") ==
        "optimizer/lr: 100: hardly any network learns with more than 0.1, as Adam changes each "
        "weight by about the rate");
  CHECK(optimizer("{class: SGD, lr: 200}") ==
        "optimizer/lr: 200: hardly any network learns with more than 10");
  CHECK(optimizer("{class: Adam, lr: 1e-3, betas: [0.999, 0.9]}") ==
        "optimizer/betas: [0.999, 0.9]: the average of the gradient is longer than that of its "
        "square; is [0.9, 0.999] meant?");
  CHECK(optimizer("{class: AdamW, lr: 1e-3, eps: 1.0}") ==
        "optimizer/eps: 1: it outweighs nearly any gradient, and the step is that of SGD with a "
        "rate of lr / eps; 1e-8 is usual");
  for (const char* name : {"Adam", "AdamW", "RMSprop", "Adagrad"}) {
    CHECK(optimizer(fmt::format("{{class: {}, lr: 1e-3, eps: 0}}", name)) ==
          "optimizer/eps: 0: a weight whose gradient was 0 so far becomes 0 / 0, a NaN, at its "
          "first step; 1e-8 is usual");
  }
  CHECK(optimizer("{class: Muon, lr: 1e-3, adamw_eps: 0}")
            .starts_with("optimizer/adamw_eps: 0: a weight whose gradient was 0 so far"));
  CHECK(optimizer("{class: LARS, lr: 1, eps: 0}") == "");
  CHECK(optimizer("{class: AdamW, lr: 1e-3, weight_decay: 100}") ==
        "optimizer/weight_decay: 100: each step with lr 0.001 takes 10 % of each weight; 0.01 to "
        "0.1 are usual");
  CHECK(optimizer("{class: SGD, lr: 1e-2, clip_norm: 1e-9}") ==
        "optimizer/clip_norm: 1e-09: gradients are made this short, and weights hardly change; 1 "
        "is usual");
}

TEST_CASE("a rate that rises to the end, or hardly falls, is reported") {
  CHECK(
      warnings("", "{class: cosine, from: 1e-5, to: 6e-3, steps: end}") ==
      "optimizer/lr: rises to the end of this training of 8 steps, from 1e-05 to 0.006. Are these "
      "two swapped?");
  CHECK(warnings("", "{class: cosine, from: 6e-3, to: 1e-5, steps: end}") == "");
  CHECK(warnings("", "{class: cosine, from: 6e-3, to: 1e-5, steps: 80}") == "");
  CHECK(warnings("", "{class: exponential, from: 1e-3, gamma: 0.999}") == "");
  const std::string hardly = warnings("", "{class: cosine, from: 6e-3, to: 1e-5, steps: 1000000}");
  CHECK(
      hardly.starts_with("optimizer/lr: hardly falls in this training of 8 steps: from 0.006 to "
                         "0.00599"));
  CHECK(hardly.ends_with(", and after it to 1e-05. Is its number of steps right?"));
}

TEST_CASE("data of an evaluation that are hardly meant are reported") {
  const std::string train = "{class: Synthetic, size: 29, shape: [1, 3, 3], classes: 3}";
  const std::string validation =
      "{class: Synthetic, size: 10, shape: [1, 3, 3], classes: 3, seed: 5}";
  const auto evaluated_on = [&](const std::string& text) {
    return warnings_of(with(validation, text));
  };
  const auto parts = [&](const std::string& of_training, const std::string& of_validation) {
    const auto subset = [&](const std::string& part) {
      return "{class: Subset, dataset: " + train + ", " + part + "}";
    };
    std::string config = with(validation, subset(of_validation));
    config.replace(config.find(train), train.size(), subset(of_training));
    return warnings_of(config);
  };
  CHECK(evaluated_on("{class: Synthetic, size: 29, shape: [1, 3, 3], classes: 3, seed: 5}") == "");
  CHECK(evaluated_on("{class: Synthetic, size: 30, shape: [1, 3, 3], classes: 3, seed: 5}") ==
        "datasets/validation: 30 examples, but datasets/train has 29: are the two swapped?");
  CHECK(evaluated_on("{class: Augment, shift: 0, noise: 0, dataset: " + validation + "}") == "");
  for (const char* key : {"noise: 5", "flip: true", "shift: 1"}) {
    const std::string name = std::string(key).substr(0, std::string(key).find(':'));
    CHECK(evaluated_on(fmt::format("{{class: Augment, {}, dataset: {}}}", key, validation)) ==
          fmt::format("datasets/validation/{}: images of an evaluation are changed at random; "
                      "Augment is for datasets/train",
                      name));
  }
  CHECK(parts("fraction: 0.9", "fraction: [0.9, 1]") == "");
  CHECK(parts("range: [0, 20]", "range: [20, 29]") == "");
  CHECK(parts("fraction: 0.9", "range: [26, 29]") == "");
  CHECK(parts("indices: [1, 2, 3, 4, 5, 6, 7, 8]", "range: [0, 8]") == "");
  const std::string split = "split: {parts: {train: 0.8, validation: 0.2}}, part: ";
  CHECK(parts(split + "train", split + "validation") == "");
  CHECK(parts("range: [0, 20]", "range: [18, 29]") ==
        "datasets/validation: 2 of its examples are also in datasets/train");
  CHECK(parts("fraction: 0.9", "range: [0, 10]") ==
        "datasets/validation: 10 of its examples are also in datasets/train");
  CHECK(parts("range: [0, 10]", "fraction: 0.2") ==
        "datasets/validation: 6 of its examples are also in datasets/train");
  CHECK(parts(split + "train",
              "split: {parts: {train: 0.8, validation: 0.2}, seed: 3}, part: validation") ==
        "datasets/validation/split: not that of datasets/train: examples of the training are among "
        "these");
}

TEST_CASE("sensible configs have no warning") {
  for (const char* optimizer :
       {"{class: Adam, lr: 3e-4}",
        "{class: Adam, lr: 1e-2, betas: [0.5, 0.999]}",
        "{class: Adam, lr: 2e-4, betas: [0, 0.9]}",
        "{class: Adam, lr: 1e-3, eps: 0.1}",
        "{class: Adam, lr: 1e-3, weight_decay: 1e-4}",
        "{class: AdamW, lr: 6e-4, betas: [0.9, 0.95], "
        "weight_decay: 0.1, clip_norm: 1}",
        "{class: AdamW, lr: 1e-3, weight_decay: 5}",
        "{class: NAdam, lr: 2e-3}",
        "{class: RAdam, lr: 1e-3}",
        "{class: Adamax, lr: 2e-3}",
        "{class: SGD, lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 1e-4}",
        "{class: SGD, lr: 1, clip_norm: 0.25}",
        "{class: SGD, lr: 30, weight_decay: 1.2e-6}",
        "{class: Lion, lr: 1e-4, weight_decay: 1}",
        "{class: LARS, lr: 8, weight_decay: 1e-4}",
        "{class: LAMB, lr: 1e-2}",
        "{class: RMSprop, lr: 0.045, eps: 1.0}",
        "{class: Adagrad, lr: 0.5}",
        "{class: Adadelta, lr: 1}",
        "{class: ScheduleFreeAdamW, lr: 2.5e-3}",
        "{class: Adam, lr: 1e-3, clip_norm: 1e-2}",
        "{class: Adam, lr: {class: cosine, from: 1e-3, to: 1e-6, steps: end, warmup: 5%}}",
        "{class: Adam, lr: {class: one_cycle, max: 1e-2, steps: end}}",
        "{class: SGD, lr: {class: linear, from: 0.1, to: 0, steps: end}}",
        "{class: SGD, lr: {class: exponential, from: 0.1, gamma: 0.999}}",
        "{class: Adam, lr: {class: step, from: 1e-3, at: [4, 6], factor: 0.1}}"}) {
    CAPTURE(optimizer);
    CHECK(warnings_of(with("{class: Adam, lr: " + kRate + "}", optimizer)) == "");
  }
}

TEST_CASE("rows of another division of a table are reported") {
  const ScratchFolder scratch;
  std::string rows = "a,class\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{},{}\n", i, i % 3);
  const std::string path = scratch.write("t.csv", rows);
  const auto notes = [&](const std::string& more) {
    std::string config = trainer_config("num_steps: 8");
    const size_t begin = config.find("  train: ");
    config.replace(begin, config.find("batch_size") - begin,
                   fmt::format("  train: {{class: Csv, path: {0}, folds: 4, fold: 1, vectors: "
                               "{{image: [a]}}}}\n  validation: {{class: Csv, path: {0}, folds: 4, "
                               "vectors: {{image: [a]}}, {1}}}\n",
                               path, more));
    config.replace(config.find("inputs: 9"), 9, "inputs: 1");
    return warnings_of(config);
  };
  CHECK(notes("part: validation, fold: 1") == "");
  CHECK(notes("part: validation, fold: 2") ==
        "datasets/validation/fold: not that of datasets/train: rows of the training are among "
        "these; fit: train takes its fold");
  CHECK(notes("part: validation, fold: 1, fold_seed: 7") ==
        "datasets/validation/fold_seed: not that of datasets/train: rows of the training are among "
        "these; fit: train takes its fold_seed");
  CHECK(notes("fold: 1, masks: false") ==
        "datasets/validation/part: that of datasets/train: these rows are trained on; part: "
        "validation has the others");
}

TEST_CASE("a patience that no training of that length has is reported") {
  const auto patience = [](const std::string& text) {
    return warnings("stop_when: {metric: validation/eval_op/loss, mode: min, patience: " + text +
                    "}");
  };
  CHECK(patience("2e") ==
        "stop_when/patience: 2 epochs is not over within this training of 8 steps: nothing ends it "
        "early");
  CHECK(patience("7s") == "");
  CHECK(patience("2s") ==
        "stop_when/patience: 2 steps is over before the next value of validation/eval_op/loss, of "
        "which this training of 8 steps has 2: the first one that is not the best ends it; a plain "
        "number counts values: patience: 3");
  CHECK(patience("1") == "");
  CHECK(patience("2") ==
        "stop_when/patience: this training of 8 steps has 2 values of validation/eval_op/loss, and "
        "the first one is the best so far: 2 in a row that are not better end nothing");
  CHECK(patience("100m") == "");
}

TEST_CASE("averages that keep most of their beginning are reported") {
  CHECK(warnings("ema: {decay: 0.99}") ==
        "ema/decay: at the end of this training of 8 steps the averages are still 92 % what the "
        "weights were before its first step. ema: {warmup: true} forgets that soon, as does a "
        "smaller decay");
  CHECK(warnings("ema: {}\neval_weights: ema")
            .starts_with("ema/decay: at the end of this training of 8 steps the averages are still "
                         "99 % what the weights were before its first step, and eval_weights: ema "
                         "evaluates them. "));
  CHECK(warnings("ema: {decay: 0.99, warmup: true}") == "");
  CHECK(warnings("ema: {decay: 0.9}") == "");
}

TEST_CASE("an end after the end, and steps of more batches than an epoch has, are reported") {
  CHECK(warnings("stop_at: 9") == "stop_at: is after the end of this training of 8 steps");
  CHECK(warnings("stop_at: 8") == "");
  CHECK(warnings("accumulate: 5") ==
        "accumulate: 5 batches, but an epoch has 4, and no step takes those of two epochs: it has "
        "4");
  CHECK(warnings("accumulate: 4") == "");
}

TEST_CASE("threads that load batches, far above the processors, are reported") {
  const auto processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::string config = trainer_config("num_steps: 8");
  const std::string usual = "n_data_processes: 0\n";
  config.replace(config.find(usual), usual.size(),
                 fmt::format("n_data_processes: {}\n", 4 * processors + 1));
  const std::string text = Session(test_config(config), true, false, false).warnings();
  CHECK(text.find(fmt::format(": n_data_processes: {} threads load batches on {} processor",
                              4 * processors + 1, processors)) != std::string::npos);
}

TEST_CASE("a validation split that is the training's is reported") {
  std::string config = trainer_config("num_steps: 8\n");
  const std::string own =
      "validation: {class: Synthetic, size: 10, shape: [1, 3, 3], classes: 3, seed: 5}";
  config.replace(config.find(own), own.size(),
                 "validation: {class: Synthetic, size: 29, shape: [1, 3, 3], classes: 3}");
  const std::string text = Session(test_config(config), true, false, false).warnings();
  CHECK(
      text.ends_with("datasets/validation: the same examples as datasets/train: evaluations see "
                     "what was trained"));
}

TEST_CASE("what is never due in a training is said once, with its key") {
  CHECK(warnings("log_ops: [train/log_op, {op: validation/log_op, when: {every: 1, from: 50e}}]\n"
                 "ckpt_freq: {every: 1, from: 9}\n"
                 "telemetry: {weights: 3e, gradients: {every: 2, from: 10}}\n"
                 "freeze: [{match: norm, from: 8}]\n") ==
        "log_ops/1/when: is never due in this training of 8 steps\n"
        "ckpt_freq: is never due in this training of 8 steps\n"
        "telemetry/weights: is never due in this training of 8 steps\n"
        "telemetry/gradients: is never due in this training of 8 steps\n"
        "freeze/0/from: is never due in this training of 8 steps");
  CHECK(warnings("log_freq: 3e") == "log_freq: is never due in this training of 8 steps");
  CHECK(warnings("train_ops: [{op: train/train_op, when: 9}]") ==
        "train_ops/0/when: is never due in this training of 8 steps");
  CHECK(warnings("stages: [{train_ops: [train/train_op], for: 2e}, {train_ops: [train/train_op, "
                 "{op: train/other_op, when: 2}]}]") ==
        "stages/1: is never due in this training of 8 steps\n"
        "stages/1/train_ops/1/when: is never due in this training of 8 steps");
  // A trial ends early on purpose.
  CHECK(warnings("log_freq: 3e", "1e-3", /*debug=*/true) == "");
}

TEST_CASE("averages that never begin are reported, and what evaluations use then") {
  CHECK(warnings("swa: {from: 50e}") == "swa: no snapshot is taken in this training of 8 steps");
  CHECK(warnings("swa: {from: 50e}\neval_weights: swa") ==
        "swa: no snapshot is taken in this training of 8 steps; eval_weights: swa evaluates the "
        "weights of the training");
  CHECK(warnings("swa: {every: 8}") == "");
  CHECK(warnings("ema: {decay: {class: power_law}}\neval_weights: ema") ==
        "ema/decay: the averages stay copies of the weights in this training of 8 steps; "
        "eval_weights: ema evaluates the weights of the training");
  CHECK(warnings("ema: {decay: {class: power_law, update_after_step: 4, update_every: 3}}") == "");
  CHECK(warnings("ema: {decay: 0.9, warmup: true}") == "");
  CHECK(
      warnings("ema: {decay: 0.9, on_cpu: true}\neval_weights: ema") ==
      "ema/on_cpu: the averages move first in step 10, and stay what the weights were before this "
      "training of 8 steps");
}

TEST_CASE("a schedule that falls and ends long before the training does is reported") {
  const auto said = [](const std::string& number, int steps) {
    return fmt::format(
        "optimizer/lr: falls to {} within {} steps and stays there for the rest of this training "
        "of 8 steps. Is its number of steps right? A chain whose last part is a number says that "
        "it is meant so",
        number, steps);
  };
  CHECK(warnings("", "{class: cosine, from: 1, to: 0.5, steps: 3}") == said("0.5", 3));
  CHECK(warnings("", "{class: cosine, from: 1, start: 2, steps: 1}") == said("0", 3));
  CHECK(warnings("", "{class: linear, from: 1, to: 0.5, steps: 2}") == said("0.5", 2));
  CHECK(warnings("", "{class: polynomial, from: 1, steps: 3}") == said("0", 3));
  CHECK(warnings("", "{class: exponential, from: 1, to: 0.1, steps: 3}") == said("0.1", 3));
  CHECK(warnings("", "{class: one_cycle, max: 1, steps: 4, pct_start: 0.5}") == said("4e-06", 3));
  CHECK(warnings("", "{class: cosine_restarts, from: 1, steps: 1, restarts: [2]}") == said("0", 3));
  CHECK(warnings("",
                 "{class: ramp, steps: 2, schedule: {class: cosine, from: 1, to: 0.5, steps: "
                 "3}}") == said("0.5", 3));
  CHECK(warnings("",
                 "{class: chain, parts: [{schedule: 1, steps: 2}, {schedule: {class: linear, "
                 "from: 1, to: 0.5, steps: 1}}]}") == said("0.5", 3));
}

TEST_CASE("a schedule that is meant to stay has no warning") {
  for (const char* lr :
       {"{class: cosine, from: 1, steps: 4}", "{class: constant, value: 1}",
        "{class: warmup, to: 1, steps: 1}", "{class: linear, from: 0, to: 1, steps: 1}",
        "{class: exponential, from: 1, gamma: 0.5}", "{class: step, from: 1, at: [1]}",
        "{class: inverse_sqrt, from: 1, steps: 1}", "{class: cosine_restarts, from: 1, steps: 2}",
        "{class: chain, parts: [{schedule: {class: cosine, from: 1, steps: 2}, steps: 2}, "
        "{schedule: 0.1}]}",
        "{class: ramp, steps: 1, schedule: 1}",
        "{class: plateau, from: 1, patience: 0, metric: validation/eval_op/loss}",
        "{class: chain, parts: [{schedule: {class: warmup, to: 1, steps: 8}, steps: 8}, "
        "{schedule: {class: cosine, from: 1, steps: 50}}]}",
        "{class: linear, from: 1, to: 0, start: 7, steps: 1}"}) {
    CAPTURE(lr);
    CHECK(warnings("", lr) == "");
  }
}

TEST_CASE("a learning rate that rises to the end of a training is reported") {
  const auto said = [](const std::string& last, const std::string& highest) {
    return "optimizer/lr: still rises at the end of this training of 8 steps: to " + last +
           ", and would later reach " + highest + ". Is its number of steps right?";
  };
  CHECK(warnings("", "{class: warmup, to: 1, steps: 70}") == said("0.1", "1"));
  CHECK(warnings("",
                 "{class: chain, parts: [{schedule: {class: warmup, to: 1, steps: 14}, steps: 14}, "
                 "{schedule: {class: cosine, from: 1, steps: 50}}]}") == said("0.5", "1"));
  // Only of a rate: the weight of a loss may grow for as long as one likes.
  std::string config = trainer_config("num_steps: 8");
  const std::string usual = "lr: {class: cosine, from: 1e-2, to: 1e-4, steps: 12}";
  config.replace(config.find(usual), usual.size(),
                 "lr: 1e-2, weight_decay: {class: warmup, to: 1, steps: 70}");
  CHECK(Session(test_config(config), true, false, false).warnings() == "");
}

TEST_CASE("a schedule that moves after the end of a training alone is reported, also a group's") {
  const std::string said =
      "stays 1 in all of this training of 8 steps: it begins to move after its end";
  CHECK(warnings("", "{class: step, from: 1, at: [30, 60]}") == "optimizer/lr: " + said);
  CHECK(warnings("", "{class: cosine, from: 1, start: 8, steps: 5}") == "optimizer/lr: " + said);
  CHECK(warnings("", "1, groups: [{match: bias, lr: {class: step, from: 1, at: [30]}}]") ==
        "optimizer/groups/0/lr: " + said);
}

TEST_CASE("a plateau that no training of that length has is reported") {
  const auto plateau = [](const std::string& metric, int patience) {
    return warnings("log_freq: 2",
                    fmt::format("{{class: plateau, from: 1, mode: min, metric: {}, patience: {}}}",
                                metric, patience));
  };
  CHECK(plateau("validation/eval_op/loss", 1) ==
        "optimizer/lr/patience: the number falls after 2 values without a better one, and this "
        "training of 8 steps has 2 values of validation/eval_op/loss: it never falls");
  CHECK(plateau("validation/eval_op/loss", 0) == "");
  CHECK(
      plateau("train/log_op/loss", 3)
          .starts_with(
              "optimizer/lr/patience: the number falls after 4 values without a better one, and "));
  CHECK(plateau("train/log_op/loss", 2) == "");
}

TEST_CASE("a mode against what the name of its metric says is reported") {
  CHECK(warnings("checkpoints: {metric: validation/eval_op/accuracy/accuracy, mode: min}") ==
        "checkpoints/mode: min, but by its name the highest validation/eval_op/accuracy/accuracy "
        "is the best");
  CHECK(warnings("stop_when: {metric: validation/eval_op/loss, mode: max, patience: 1e}") ==
        "stop_when/mode: max, but by its name the lowest validation/eval_op/loss is the best");
  CHECK(
      warnings("", "{class: plateau, from: 1, patience: 0, metric: validation/eval_op/accuracy}") ==
      "optimizer/lr/mode: min, but by its name the highest validation/eval_op/accuracy is the "
      "best");
}

TEST_CASE("processes that never have an example are reported") {
  const std::string config = trainer_config("num_steps: 8\ndevice: cpu");
  const auto texts = together(3, [&](World& world) {
    std::string few = config;
    few.replace(few.find("batch_size: 8"), 13, "batch_size: 1");
    return Session(test_config(few), true, false, false, &world).warnings() + "|" +
           Session(test_config(config), true, false, false, &world).warnings();
  });
  CHECK(texts.front().ends_with(
      "batch_size: 3 processes share batches of 1 example: 2 of them never have one|"));
}

TEST_CASE("threads far above the processors are reported") {
  const int before = at::get_num_threads();
  const auto processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::string config = trainer_config("num_steps: 8");
  const std::string usual = "num_threads: 1\n";
  config.replace(config.find(usual), usual.size(),
                 fmt::format("num_threads: {}\n", 4 * processors + 1));
  const std::string text = Session(test_config(config), true, false, false).warnings();
  at::set_num_threads(before);
  CHECK(text.ends_with(fmt::format(
      ": num_threads: {} threads share {} processor{}: they wait for each other, and a step takes "
      "far longer than with num_threads: {}",
      4 * processors + 1, processors, processors == 1 ? "" : "s", processors)));
}

}  // namespace plan_warnings_test
}  // namespace stepop
