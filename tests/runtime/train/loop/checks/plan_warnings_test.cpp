#include "runtime/train/loop/checks/plan_warnings.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <thread>

#include "tests/runtime/train/distributed/together.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop {
namespace plan_warnings_test {

/// The warnings at the start of a training of 8 steps, two epochs; without the name of the file.
std::string warnings(const std::string& more, const std::string& lr = "1e-3", bool debug = false) {
  std::string config = trainer_config("num_steps: 8\n" + more);
  const std::string usual = "{class: cosine, from: 1e-2, to: 1e-4, steps: 12}";
  config.replace(config.find(usual), usual.size(), lr);
  std::string text = Session(test_config(config), true, debug, false).warnings();
  const std::string file = "test.yaml:";
  for (size_t at = text.find(file); at != std::string::npos; at = text.find(file)) {
    text.erase(at, text.find(": ", at) + 2 - at);
  }
  return text;
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
  CHECK(warnings("", "{class: one_cycle, max: 25, steps: 4, pct_start: 0.5}") == said("0.0001", 3));
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
