// The learning rates, optimizers and other keys of `train` that come from DL-Art-School.
#include "iterators/extensible/step/learning_rates.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "iterators/extensible/batch_rules.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/tools/migrate/from_dlas.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace learning_rates_test {

using namespace extensible;

Config train_of(const std::string& text) {
  return Config(parse_yaml("train: {" + text + "}", {"test.yaml", 0})).at("train");
}

/// The rates of iterations 0, 1, 2, ... for an lr of 1.
std::vector<double> rates(const std::string& train, size_t count, int64_t start = 0) {
  Value::Map map;
  map.set("lr", LearningRates(train_of(train)).of(Value(1.0), start));
  const Config config{Value(std::move(map))};
  const Scheduled lr(config, "lr");
  std::vector<double> found;
  for (size_t i = 0; i < count; ++i) found.push_back(lr.at(static_cast<int64_t>(i)));
  return found;
}

void check_rates(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    INFO("iteration ", i);
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

TEST_CASE("a key of a scheme is read by the schemes for which a translated config keeps it") {
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"gen_lr_steps", "[4]"}, {"lr_gamma", "0.5"},     {"progressive_starts", "[0]"},
      {"restarts", "[4]"},     {"clear_state", "true"}, {"restart_weights", "[1]"},
      {"warmup_steps", "3"},   {"T_period", "[4]"},     {"warmup", "2"},
      {"eta_min", "0.1"}};
  for (const std::string scheme :
       {"MultiStepLR", "ProgressiveMultiStepLR", "CosineAnnealingLR_Restart"}) {
    for (const auto& [key, value] : keys) {
      CAPTURE(scheme);
      CAPTURE(key);
      const std::string text = fmt::format("default_lr_scheme: {}, {}: {}", scheme, key, value);
      const std::string found = message_of([&] { const LearningRates rates(train_of(text)); });
      const bool is_read = found.find("belongs to") == std::string::npos;
      const Value dlas =
          parse_yaml(fmt::format("networks: {{}}\nsteps: {{}}\ntrain: {{niter: 9, {}}}\n", text),
                     {"test.yaml", 0});
      const bool is_kept = translate_dlas(dlas).config.find("train/" + key) != nullptr;
      // The averages begin anew with a cosine's restarts as well, which is so here alone.
      const bool is_new = key == "clear_state" && scheme == "CosineAnnealingLR_Restart";
      CHECK(is_read == (is_kept || is_new));
      if (is_new) CHECK_FALSE(is_kept);
    }
  }
}

std::string mistake(const std::string& train) {
  return message_of([&] { const LearningRates rates(train_of(train)); });
}

const std::string kSteps = "default_lr_scheme: MultiStepLR, lr_gamma: 0.5, ";

TEST_CASE("milestones fire in the iteration before their number, restarts in their own") {
  check_rates(rates(kSteps + "gen_lr_steps: [3, 5, 9], restarts: [6], restart_weights: [0.8]", 11),
              {1, 1, 0.5, 0.5, 0.25, 0.25, 0.8, 0.8, 0.4, 0.4, 0.4});
  // The defaults that a file there may write out.
  check_rates(
      rates(kSteps + "gen_lr_steps: [3], restarts: null, restart_weights: [1], warmup_iter: "
                     "-1, force_lr: null, clear_state: false",
            4),
      {1, 1, 0.5, 0.5});
}

TEST_CASE("a milestone that stands twice counts twice, and once with ProgressiveMultiStepLR") {
  check_rates(rates(kSteps + "gen_lr_steps: [2, 4, 4]", 5), {1, 0.5, 0.5, 0.125, 0.125});
  check_rates(
      rates("default_lr_scheme: ProgressiveMultiStepLR, gen_lr_steps: [2, 2], lr_gamma: 0.5, "
            "progressive_starts: [0]",
            4),
      {1, 0.5, 0.5, 0.5});
}

TEST_CASE("a warm-up reaches the full rate, and loses no milestone") {
  check_rates(rates(kSteps + "gen_lr_steps: [100], warmup_steps: 5", 7),
              {0.2, 0.4, 0.6, 0.8, 1, 1, 1});
  check_rates(rates(kSteps + "gen_lr_steps: [100], warmup_iter: 4", 6), {0, 0.25, 0.5, 0.75, 1, 1});
  check_rates(rates(kSteps + "gen_lr_steps: [3], warmup_iter: 4", 6),
              {0, 0.25, 0.25, 0.375, 0.5, 0.5});
  check_rates(rates("warmup_iter: 2", 3), {0, 0.5, 1});
}

TEST_CASE("a cosine holds the rate, falls, and stays low until it begins anew") {
  const auto found = rates(
      "default_lr_scheme: CosineAnnealingLR_Restart, T_period: [4, 2], restarts: [6], "
      "restart_weights: [0.5], warmup: 2, eta_min: 0.1",
      11);
  const double root = std::sqrt(0.5);
  check_rates(found, {1, 1, 1, 0.1 + 0.45 * (1 + root), 0.55, 0.1 + 0.45 * (1 - root), 0.1, 0.1,
                      0.5, 0.3, 0.1});
  check_rates(rates("default_lr_scheme: CosineAnnealingLR_Restart, T_period: [2]", 4),
              {1, 0.5, 0, 0});
}

/// The same of a training whose first iteration is `first`.
std::vector<double> rates_from(int64_t first, const std::string& train, size_t count,
                               int64_t start = 0) {
  const Config root(
      parse_yaml(fmt::format("start_step: {}\ntrain: {{{}}}", first - 1, train), {"test.yaml", 0}));
  Value::Map map;
  map.set("lr", LearningRates(root.at("train")).of(Value(1.0), start));
  const Config config{Value(std::move(map))};
  const Scheduled lr(config, "lr");
  std::vector<double> found;
  for (size_t i = 0; i < count; ++i) found.push_back(lr.at(static_cast<int64_t>(i)));
  return found;
}

// trainer/lr_scheduler.py of DL-Art-School, with last_epoch = 8, 9, ... and step() as
// update_learning_rate calls it; PyTorch 2.13.
TEST_CASE("a training that begins later has the rates of there, without milestones before it") {
  const std::vector<double> expected = {0.5, 0.5, 0.8, 0.4, 0.4, 0.4};
  const std::string milestones = kSteps + "gen_lr_steps: [3, 9, 12], ";
  check_rates(rates_from(8, milestones + "restarts: [10], restart_weights: [0.8]", 6), expected);
  check_rates(rates_from(8, milestones + "restarts: [4, 10], restart_weights: [0.7, 0.8]", 6),
              expected);
  check_rates(rates_from(8, kSteps + "gen_lr_steps: [3], warmup_iter: 12", 4),
              {8.0 / 12, 9.0 / 12, 10.0 / 12, 11.0 / 12});
  const std::string progressive =
      "default_lr_scheme: ProgressiveMultiStepLR, gen_lr_steps: [4, 8], lr_gamma: 0.5, "
      "progressive_starts: [0, 6]";
  check_rates(rates_from(8, progressive, 3, 0), {1, 1, 1});
  check_rates(rates_from(8, progressive, 7, 6), {1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25});
  // Behind the warm-up, which there ends below the full rate.
  check_rates(rates_from(8, kSteps + "gen_lr_steps: [3], warmup_iter: 8", 2), {1, 1});
  // A cosine that begins at the iteration 10, as the one above at 2.
  const std::string cosine =
      "default_lr_scheme: CosineAnnealingLR_Restart, T_period: [4, 2], restarts: [6], "
      "restart_weights: [0.5], eta_min: 0.1, warmup: ";
  check_rates(rates_from(8, cosine + "10", 11), rates(cosine + "2", 11));
  // Recipes have `start_step: 0`, also where the cosine begins at once.
  check_rates(rates_from(1, cosine + "0", 11), rates(cosine + "0", 11));
  CHECK(message_of([&] { rates_from(8, cosine + "6", 1); })
            .find("test.yaml:2: train/warmup: the first iteration is 8, by start_step, and the "
                  "cosine has begun before it") != std::string::npos);
  CHECK(message_of([&] { rates_from(-3, cosine + "7", 1); }).find("start_step") !=
        std::string::npos);
}

TEST_CASE("each group's milestones count from its own start") {
  const std::string train =
      "default_lr_scheme: ProgressiveMultiStepLR, gen_lr_steps: [2, 4], lr_gamma: 0.5, "
      "progressive_starts: [0, 3]";
  check_rates(rates(train, 7, 0), {1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25});
  check_rates(rates(train, 7, 3), {1, 1, 1, 1, 0.5, 0.5, 0.25});
  const LearningRates progressive(train_of(train));
  CHECK(progressive.starts({"a", "b"}) == std::vector<int64_t>{0, 3});
  CHECK(message_of([&] {
          progressive.starts({"a", "b", "c"});
        }) ==
        "test.yaml:1: train/progressive_starts: expected 3 iterations of 0 or more, for the groups "
        "of parameters a, b, c, found [0, 3]");
  CHECK(LearningRates(train_of(kSteps + "gen_lr_steps: [1]")).starts({"a"}) ==
        std::vector<int64_t>{0});
}

TEST_CASE("force_lr is the rate of everything") {
  check_rates(rates(kSteps + "gen_lr_steps: [1], force_lr: 0.125", 3), {0.125, 0.125, 0.125});
}

TEST_CASE("state is cleared at restarts, where clear_state says so") {
  const auto clears = [](const std::string& text) {
    return LearningRates(train_of(text)).clears_at();
  };
  const std::string restarts = kSteps + "gen_lr_steps: [3], restarts: [6, 8]";
  CHECK(clears(restarts).empty());
  CHECK((clears(restarts + ", clear_state: true") == Value::List{Value(6), Value(8)}));
}

TEST_CASE("mistakes of a scheme name the key") {
  CHECK(mistake("default_lr_scheme: StepLR, lr_gamma: 1") ==
        "test.yaml:1: train/default_lr_scheme: expected MultiStepLR, ProgressiveMultiStepLR, "
        "CosineAnnealingLR_Restart, found \"StepLR\"; any other schedule is written as the lr of "
        "optimizer_params, such as {class: cosine, from: 1e-3, steps: 10000}");
  CHECK(mistake("gen_lr_steps: [3]") ==
        "test.yaml:1: train/gen_lr_steps: belongs to MultiStepLR and ProgressiveMultiStepLR: name "
        "it by default_lr_scheme");
  CHECK(mistake(kSteps + "gen_lr_steps: [3], T_period: [4]") ==
        "test.yaml:1: train/T_period: belongs to CosineAnnealingLR_Restart, and default_lr_scheme "
        "is MultiStepLR");
  CHECK(mistake(kSteps + "gen_lr_steps: [3, 2]") ==
        "test.yaml:1: train/gen_lr_steps: expected iterations of 1 or more in ascending order, "
        "found 2");
  CHECK(mistake(kSteps + "gen_lr_steps: [3], restarts: [4, 5], restart_weights: [1]") ==
        "test.yaml:1: train/restart_weights: expected 2 numbers, one for each of restarts, found "
        "1");
  CHECK(mistake(kSteps + "gen_lr_steps: [3], warmup_iter: 5, warmup_steps: 5") ==
        "test.yaml:1: train/warmup_steps: found together with warmup_iter, which is a warm-up as "
        "well: keep one");
  CHECK(mistake("default_lr_scheme: CosineAnnealingLR_Restart, T_period: [4], restarts: [2]") ==
        "test.yaml:1: train/T_period: expected 2 numbers of 1 or more, of the fall at the "
        "beginning and of that after each of restarts, found [4]");
}

TEST_CASE("a batch is sorted and cut by keys of train") {
  const Batch batch({{"x", at::arange(12).reshape({3, 4})}, {"x_lengths", at::tensor({1, 3, 2})}},
                    {}, {0, 1, 2});
  const BatchRules rules(train_of("sort_key: x_lengths, auto_collate: true"));
  const Batch cut = rules.cut(batch);
  CHECK(at::equal(cut["x"], batch["x"].narrow(1, 0, 3)));
  const Batch sorted = rules.sorted(cut);
  CHECK(at::equal(sorted["x_lengths"], at::tensor({3, 2, 1})));
  CHECK(at::equal(sorted["x"], cut["x"].index_select(0, at::tensor({1, 2, 0}))));
  CHECK(message_of([&] { BatchRules(train_of("sort_key: y")).sorted(batch); }) ==
        "test.yaml:1: train/sort_key: expected a tensor [B] of the batch, found \"y\"; the batch "
        "has: x, x_lengths");
  const BatchRules parts(
      train_of("mega_batch_factor: 2, mod_batch_factor: 4, mod_batch_factor_every: 5"));
  CHECK(parts.most_parts() == 4);
  CHECK(parts.parts(4) == 2);
  CHECK(parts.parts(5) == 4);
}

/// A network from x, [4], to [2], with a hidden layer.
std::string config(const std::string& step, const std::string& train = "{}",
                   const std::string& more = "") {
  return fmt::format(R"(
iterator: ExtensibleTrainer
num_threads: 1
batch_size: 4
num_steps: 12
log_freq: 1000
ckpt_freq: 5
seed: 3
datasets: {{train: {{class: RandomTensors, size: 400, tensors: {{x: [4], y: [2]}}}}}}
networks: {{a: {{class: MLP, inputs: 4, hidden: [6], classes: 2}}}}
steps:
  s:
    training: a
    {}
    injectors: {{made: {{type: generator, generator: a, in: x, out: made}}}}
    losses: {{p: {{type: pix, criterion: l2, real: y, fake: made, weight: 1}}}}
train: {}
{}
)",
                     step, train, more);
}

const Optimizer& optimizer_of(TestRun& run) {
  return (*run.session.context().updates.find("steps_s"))->optimizer();
}

std::string mistake_in(const std::string& step, const std::string& train = "{}",
                       const std::string& more = "") {
  return message_of([&] { TestRun run(config(step, train, more)); });
}

TEST_CASE("groups of parameters by pattern have rates of their own, each parameter once") {
  const auto lrs = [](const std::string& optimizer, const std::string& train = "{}") {
    TestRun run(
        config(optimizer + ", param_groups: {head: {match: '^layers.1', lr: 0.25}}}", train));
    CHECK(optimizer_of(run).parameters().size() == 4);
    return optimizer_of(run).lrs(4);
  };
  // Without a group, biases beside weights; last what has no group.
  CHECK(lrs("optimizer: adamw\n    optimizer_params: {lr: 0.5, weight_decay: 0.1") ==
        std::vector<double>{0.5, 0.25, 0.25, 0.5});
  CHECK(lrs("optimizer: sgd\n    optimizer_params: {lr: 0.5, momentum: 0.9") ==
        std::vector<double>{0.25, 0.5});
  CHECK(lrs("optimizer: lars\n    optimizer_params: {lr: 0.5, lars_coefficient: 0.001") ==
        std::vector<double>{0.25, 0.5});
  CHECK(lrs("optimizer: sgd\n    optimizer_params: {lr: 0.5",
            "{default_lr_scheme: ProgressiveMultiStepLR, gen_lr_steps: [2], lr_gamma: 0.5, "
            "progressive_starts: [0, 100]}") == std::vector<double>{0.25, 0.25});
  CHECK(
      mistake_in("optimizer_params: {lr: 1, param_groups: {head: {lr: 1}}}")
          .ends_with("steps/s/optimizer_params/param_groups/head/match: missing: a regular "
                     "expression for the names of the group's parameters, such as \"^head\\.\"; a "
                     "network here does not mark its parameters"));
  CHECK(mistake_in("optimizer_params: {lr: 1, param_groups: {head: {match: tail, lr: 1}}}")
            .find("param_groups/head/match: matches no parameter that an earlier group leaves; the "
                  "parameters are: layers.0.weight, layers.0.bias, ") != std::string::npos);
}

TEST_CASE("optimizers that need more than there is are refused with a sentence") {
  CHECK(mistake_in("optimizer: adamw_zero\n    optimizer_params: {lr: 1}")
            .ends_with("steps/s/optimizer: adamw_zero spreads its averages over several processes: "
                       "take adamw, and distributed: {shard_optimizer: true} at the top of the "
                       "config"));
  CHECK(mistake_in("optimizer: mu_adamw\n    optimizer_params: {lr: 1}")
            .find("mu_adamw needs the Python package mup") != std::string::npos);
  CHECK(mistake_in("optimizer: lars\n    optimizer_params: {lr: 1}")
            .find("optimizer_params/lars_coefficient: missing") != std::string::npos);
}

TEST_CASE("a training with restarts that clear the state resumes with the same bits") {
  for (const char* optimizer : {"adamw", "lamb"}) {
    INFO(optimizer);
    const std::string text = config(
        fmt::format("optimizer: {}\n    every: 2\n    clip_grad_eps: 0.5\n    optimizer_params: "
                    "{{lr: 0.05, weight_decay: 0.01}}",
                    optimizer),
        "{default_lr_scheme: MultiStepLR, gen_lr_steps: [4, 9], lr_gamma: 0.5, warmup_steps: 3, "
        "restarts: [3, 7], restart_weights: [0.9, 0.6], clear_state: true}");
    TestRun whole(text);
    whole.train();
    TestRun rest(text, whole, 5);
    rest.train();
    CHECK(differences(rest.session.checkpoint().tensors, whole.session.checkpoint().tensors) == "");
    CHECK(whole.session.checkpoint().tensors.at("steps_s.layers.0.weight.step").item<float>() == 2);
  }
}

TEST_CASE("ema_rate of train is the average of the runtime") {
  TestRun run(config("optimizer_params: {lr: 0.1}", "{ema_rate: 0.5}"));
  run.train();
  const State state = run.session.checkpoint().tensors;
  CHECK(state.contains("ema_a.layers.0.weight"));
  CHECK_FALSE(at::equal(state.at("ema_a.layers.0.weight"), state.at("a.layers.0.weight")));
  CHECK(mistake_in("optimizer_params: {lr: 0.1}", "{ema_rate: 0.5}", "ema: {decay: 0.9}")
            .ends_with("train/ema_rate: 0.5, and ema/decay is 0.9: keep one of them"));
  TestRun without(config("optimizer_params: {lr: 0.1}", "{ema_rate: 0.5, ema_enabled: false}"));
  CHECK_FALSE(without.session.checkpoint().tensors.contains("ema_a.layers.0.weight"));
  const auto on_cpu = [](const std::string& train) {
    TestRun made(config("optimizer_params: {lr: 0.1}", train));
    const Value* place = made.session.context().config.peek("ema/on_cpu");
    return place != nullptr && *place == Value(true);
  };
  CHECK_FALSE(on_cpu("{ema_rate: 0.5}"));
  CHECK(on_cpu("{ema_rate: 0.5, ema_on_cpu: true}"));
  CHECK(on_cpu("{ema_on_cpu: true}"));
  CHECK_FALSE(on_cpu("{ema_on_cpu: true, ema_enabled: false}"));
  CHECK(mistake_in("optimizer_params: {lr: 0.1}", "{ema_on_cpu: true}", "ema: {on_cpu: false}")
            .ends_with("train/ema_on_cpu: true, and ema/on_cpu is not: keep one of them"));
}

TEST_CASE("keys of DL-Art-School that are not the trainer's name the one that is") {
  const std::string step = "optimizer_params: {lr: 0.1}";
  const std::string begin = ": a key of DL-Art-School; here: ";
  CHECK(mistake_in(step, "{niter: 20}")
            .ends_with("train/niter" + begin +
                       "num_steps, at the top of the config, says when the training ends. `stepop "
                       "new NAME --from-dlas FILE` translates a whole config"));
  CHECK(mistake_in(step, "{}", "experiments: [gradients]")
            .find("experiments" + begin +
                  "experiments of DL-Art-School are Python: write a hook") != std::string::npos);
  CHECK(mistake_in(step, "{batch_size_optimizer: {type: gradient_direction}}")
            .find("a batch has a fixed size here: accumulate: N") != std::string::npos);
  CHECK(mistake_in(step, "{}", "automatically_scale_grads_for_fanin: true")
            .find("give layers a learning rate of their own") != std::string::npos);
  // What only switches something off is no mistake.
  TestRun off(config(step, "{ema_on_cpu: false}", "fp16: false\nwandb: false"));
  CHECK(
      mistake_in("check_grads_for_nan: true\n    " + step, "{}", "on_nan: ignore")
          .find("steps/s/check_grads_for_nan: true, and on_nan is ignore, which checks nothing") !=
      std::string::npos);
}

}  // namespace learning_rates_test
}  // namespace stepop
