// Trainings by ExtensibleTrainer: when its parts run, what they change, and what a resume gives.
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "iterators/extensible/step/injector.h"
#include "iterators/extensible/step/loss.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/train/optim/update.h"
#include "tests/iterators/extensible/two_steps.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace extensible_steps_test {

using namespace extensible;
using namespace extensible_two_steps;

std::vector<std::string>& events() {
  static std::vector<std::string> list;
  return list;
}

/// `out = in`, and a note of it: `4 name`, in brackets where the step does not train.
class Noting : public Injector {
 public:
  Noting(const Config& params, Ports& ports)
      : in_(ports.reads(params, "in")),
        out_(ports.writes(params, "out")),
        name_(params.get<std::string>("note")) {}
  void run(StepState& state, const Iteration& iteration) override {
    events().push_back(iteration.is_training ? fmt::format("{} {}", iteration.number, name_)
                                             : fmt::format("{} ({})", iteration.number, name_));
    state.set(out_, state.tensor(in_) * 1);
  }

 private:
  Slot in_, out_;
  std::string name_;
};
STEPOP_REGISTER_INJECTOR(test_noting, Noting, {"For tests.", {{"note", "", ""}}});

/// The mean of squares, and a note of it: `4 name`, in brackets where no graph is made.
class NotingLoss : public Loss {
 public:
  NotingLoss(const Config& params, Ports& ports)
      : key_(ports.reads(params, "key")), name_(params.get<std::string>("note")) {}
  at::Tensor compute(StepState& state, const Iteration& iteration, Scalars&) override {
    const at::Tensor loss = state.tensor(key_).square().mean();
    events().push_back(loss.requires_grad() ? fmt::format("{} {}", iteration.number, name_)
                                            : fmt::format("{} ({})", iteration.number, name_));
    return loss;
  }

 private:
  Slot key_;
  std::string name_;
};
STEPOP_REGISTER_LOSS(test_noting, NotingLoss, {"For tests.", {{"note", "", ""}}});

/// A config whose networks of these names no step trains.
std::string without_training(std::string text, const std::string& networks) {
  for (const char name : networks) {
    const std::string of_network = fmt::format("  {}: {{", name);
    text.insert(text.find(of_network) + of_network.size(), "trainable: false, ");
  }
  return text;
}

std::vector<std::string> events_of(const std::string& steps, const std::string& untrained,
                                   int64_t num_steps = 10) {
  TestRun run(without_training(config(steps, num_steps), untrained));
  events().clear();
  run.train();
  return events();
}

TEST_CASE("gates of a step, of injectors and of losses: every event of ten iterations") {
  const auto found = events_of(R"(
steps:
  first:
    training: a
    after: 2
    before: 7
    every: 3
    optimizer_params: {lr: 0.01}
    injectors:
      made: {type: generator, generator: a, in: x, out: made}
      late: {type: test_noting, note: late, in: x, out: late, after: 4, every: 2}
      only: {type: test_noting, note: training, in: x, out: only, train: true}
      other: {type: test_noting, note: not training, in: x, out: other, eval: true}
    losses:
      l: {type: test_noting, note: loss, key: made, weight: 1}
      off: {type: test_noting, note: off, key: made, weight: 1, after: 6}
)",
                               "b");
  CHECK((found ==
         std::vector<std::string>{"2 (not training)", "2 (loss)",         "2 (off)",              //
                                  "3 training",       "3 loss",           "3 (off)",              //
                                  "4 (late)",         "4 (not training)", "4 (loss)", "4 (off)",  //
                                  "5 (not training)", "5 (loss)",         "5 (off)",              //
                                  "6 late",           "6 training",       "6 loss",   "6 off",    //
                                  "7 (not training)", "7 (loss)",         "7 (off)"}));
}

TEST_CASE("a step without what it requires is left out") {
  const auto found = events_of(R"(
steps:
  first:
    training: a
    optimizer_params: null
    injectors: {x2: {type: test_noting, note: made, in: x, out: x2, every: 2}}
  second:
    training: a
    requires: [x2]
    injectors: {x3: {type: test_noting, note: used, in: x2, out: x3}}
)",
                               "ab", 3);
  CHECK((found == std::vector<std::string>{"0 made", "0 used", "2 made", "2 used"}));
}

TEST_CASE("a loss of the training or of evaluations alone is not looked at elsewhere") {
  const auto found = [](const std::string& key) {
    return events_of(
        "steps: {s: {training: a, every: 2, optimizer_params: {lr: 0.1}, injectors: "
        "{g: {type: generator, generator: a, in: x, out: made}}, losses: {l: {type: "
        "test_noting, note: seen, key: made, weight: 1" +
            key + "}}}}\n",
        "b", 4);
  };
  CHECK((found("") == std::vector<std::string>{"0 seen", "1 (seen)", "2 seen", "3 (seen)"}));
  CHECK((found(", train: true") == std::vector<std::string>{"0 seen", "2 seen"}));
  CHECK((found(", eval: true") == std::vector<std::string>{"1 (seen)", "3 (seen)"}));
  CHECK(message_of([&] {
          found(", train: true, eval: true");
        }).find("steps/s/losses/l/eval: train and eval are both true: it would never run") !=
        std::string::npos);
}

TEST_CASE("a step changes the network that it trains, and no other") {
  TestRun one(config(two_steps("after: 100"), 3));
  State before;
  for (const auto& [name, tensor] : one.session.checkpoint().tensors) before[name] = tensor.clone();
  one.train();
  const State alone = one.session.checkpoint().tensors;
  CHECK_FALSE(at::equal(alone.at("a.layers.0.weight"), before.at("a.layers.0.weight")));
  CHECK(at::equal(alone.at("b.layers.0.weight"), before.at("b.layers.0.weight")));

  TestRun both(config(two_steps(""), 3));
  both.train();
  const State after = both.session.checkpoint().tensors;
  CHECK(at::equal(after.at("a.layers.0.weight"), alone.at("a.layers.0.weight")));
  CHECK_FALSE(at::equal(after.at("b.layers.0.weight"), before.at("b.layers.0.weight")));
  for (const auto& name : {"a", "b"}) {
    for (const auto& parameter : both.session.context().networks.get(name)->parameters()) {
      CHECK(parameter.requires_grad());
    }
  }
}

TEST_CASE("a network that trains from an iteration on, and an update that has its own time") {
  const auto changed_after = [](const std::string& change, int64_t steps) {
    std::string text = config(two_steps(""), steps);
    const std::string what = change.substr(0, change.find('>'));
    text.replace(text.find(what), what.size(), change.substr(change.find('>') + 1));
    TestRun run(text);
    const at::Tensor before = run.session.checkpoint().tensors.at("b.layers.0.weight").clone();
    run.train();
    return !at::equal(run.session.checkpoint().tensors.at("b.layers.0.weight"), before);
  };
  const std::string network = "inputs: 2, hidden>after: 3, inputs: 2, hidden";
  CHECK_FALSE(changed_after(network, 3));
  CHECK(changed_after(network, 4));
  const std::string update =
      "optimizer_params: {lr: 0.05}\n    injectors: {of_b>optimizer_params: {lr: 0.05, after: 2, "
      "before: -1}\n    injectors: {of_b";
  CHECK_FALSE(changed_after(update, 2));
  CHECK(changed_after(update, 3));
}

TEST_CASE("a batch in parts gives the gradient of the whole, also when they differ in size") {
  const auto weights = [](int64_t parts) {
    TestRun run(
        config(two_steps("") + fmt::format("train: {{mega_batch_factor: {}}}\n", parts), 5));
    run.train();
    return run.session.checkpoint().tensors.at("b.layers.1.weight").clone();
  };
  const at::Tensor whole = weights(1);
  CHECK(at::allclose(weights(2), whole, 1e-5, 1e-6));
  CHECK(at::allclose(weights(3), whole, 1e-5, 1e-6));
  CHECK(at::allclose(weights(100), whole, 1e-5, 1e-6));
}

TEST_CASE("pictures are those of the batch that was trained, also when others pass before a log") {
  const ScratchFolder data;
  for (const char* name : {"a", "b"}) {
    data.write(fmt::format("dark/{}.png", name), encode_png(at::full({4, 4, 3}, 50, at::kByte)));
    data.write(fmt::format("bright/{}.png", name), encode_png(at::full({4, 4, 3}, 200, at::kByte)));
  }
  for (const int parts : {1, 2}) {
    CAPTURE(parts);
    TestRun run(fmt::format(
        "iterator: ExtensibleTrainer\nbatch_size: 2\nnum_steps: 2\nlog_freq: 1\n"
        "log_ops: [train/log_op, validation/log_op, validation/visuals_op, train/visuals_op]\n"
        "datasets: {{train: {{class: PairedImages, hq: {0}/dark}}, validation: {{class: "
        "PairedImages, hq: {0}/bright}}}}\n"
        "networks: {{a: {{which_model: toy_d, nf: 4}}}}\n"
        "train: {{mega_batch_factor: {1}}}\n"
        "logger: {{visuals: [hq], visual_debug_rate: 1}}\n"
        "steps:\n  s: {{training: a, optimizer_params: {{lr: 0.1}}, injectors: {{i: {{type: "
        "discriminator, discriminator: a, in: hq, out: p}}}}, losses: {{l: {{type: direct, key: p, "
        "weight: 1}}}}}}\n",
        data.path(""), parts));
    run.train();
    const auto shown = [&](const std::string& split) {
      const at::Tensor picture = read_image(
          fmt::format("{}/train/{}/visuals_op/{}", run.root(), split, picture_file("hq", 2, "")));
      return to_byte(picture[0][3][3].item<float>());
    };
    CHECK(shown("train") == 50);
    CHECK(shown("validation") == 200);
  }
}

TEST_CASE("a run that resumes in the middle ends with the same bits as one that did not stop") {
  const std::string text =
      config(two_steps("after: 3\n    every: 2") +
                 "train: {default_lr_scheme: MultiStepLR, gen_lr_steps: [4, 8], lr_gamma: 0.5}\n"
                 "ckpt_freq: 5\n",
             10);
  TestRun whole(text);
  whole.train();
  TestRun rest(text, whole, 5);
  rest.train();
  CHECK(differences(rest.session.checkpoint().tensors, whole.session.checkpoint().tensors) == "");
}

TEST_CASE("milestones take effect in the iteration before the one of their number") {
  const std::string scheme =
      "train: {default_lr_scheme: MultiStepLR, gen_lr_steps: [10, 15], lr_gamma: 0.5}\n";
  const auto lr_of_last = [&](int64_t steps) {
    TestRun run(config(two_steps("") + scheme, steps));
    run.train();
    return (*run.session.context().updates.find("steps_first"))->lr();
  };
  CHECK(lr_of_last(9) == doctest::Approx(0.05));
  CHECK(lr_of_last(10) == doctest::Approx(0.025));
  CHECK(lr_of_last(14) == doctest::Approx(0.025));
  CHECK(lr_of_last(15) == doctest::Approx(0.0125));
}

TEST_CASE("biases do not decay, weights do") {
  std::string text = config(two_steps("after: 100"), 1);
  const std::string params = "optimizer_params: {lr: 0.05}";
  text.replace(text.find(params), params.size(), "optimizer_params: {lr: 0.1, weight_decay: 0.5}");
  text.replace(text.find("weight: 1"), 9, "weight: 0");
  TestRun run(text);
  State before;
  for (const auto& [name, tensor] : run.session.checkpoint().tensors) before[name] = tensor.clone();
  run.train();
  const State after = run.session.checkpoint().tensors;
  for (const auto& layer : {"a.layers.0.", "a.layers.1."}) {
    const std::string weight = std::string(layer) + "weight";
    const std::string bias = std::string(layer) + "bias";
    CHECK(at::allclose(after.at(weight), before.at(weight) * 0.95));
    CHECK(at::equal(after.at(bias), before.at(bias)));
  }
}

TEST_CASE("a network that is not trainable keeps its running statistics") {
  const auto running_means = [](bool is_trainable) {
    TestRun run(fmt::format(
        "iterator: ExtensibleTrainer\nbatch_size: 4\nnum_steps: 2\nseed: 1\nlog_freq: 100\n"
        "datasets: {{train: {{class: RandomTensors, size: 8, tensors: {{x: [3, 4, 4]}}}}}}\n"
        "networks:\n"
        "  g: {{which_model: toy_g, nf: 4, scale: 2{}}}\n"
        "  d: {{which_model: toy_d, nf: 4{}}}\n"
        "steps:\n"
        "  s: {{training: {}, optimizer_params: {{lr: 0.01}}, injectors: {{i: {{type: generator, "
        "generator: g, in: x, out: o}}, j: {{type: discriminator, discriminator: d, in: o, out: "
        "p}}}}, losses: {{l: {{type: direct, key: p, weight: 1}}}}}}\n",
        is_trainable ? "" : ", trainable: false", is_trainable ? ", trainable: false" : "",
        is_trainable ? "g" : "d"));
    run.train();
    std::vector<at::Tensor> means;
    for (const auto& [name, tensor] : run.session.checkpoint().tensors) {
      if (name.ends_with("running_mean")) means.push_back(tensor.clone());
    }
    REQUIRE(means.size() == 1);
    return means.front();
  };
  CHECK(running_means(true).abs().max().item<double>() > 0);
  CHECK(running_means(false).abs().max().item<double>() == 0);
}

TEST_CASE("an injector with no_accum runs for the first part of a batch alone") {
  const auto found = events_of(R"(
steps:
  first:
    training: a
    optimizer_params: null
    injectors:
      once: {type: test_noting, note: once, in: x, out: once, no_accum: true}
      each: {type: test_noting, note: each, in: x, out: each}
train: {mega_batch_factor: 3}
)",
                               "ab", 1);
  CHECK((found == std::vector<std::string>{"0 once", "0 each", "0 each", "0 each"}));
}

TEST_CASE("a number of one step is read by a later one") {
  const auto distance = [](double weight) {
    std::string text = config(fmt::format(R"(
steps:
  first:
    training: a
    optimizer_params: null
    injectors: {{w: {{type: scheduled_scalar, out: w, scheduler: {{type: fixed, weight: {}}}}}}}
  second:
    training: a
    optimizer_params: null
    injectors: {{noise: {{type: add_noise, in: x, scale: w, mode: uniform, out: noisy}}}}
    losses: {{l: {{type: pix, criterion: l1, real: x, fake: noisy, weight: 1}}}}
)",
                                          weight),
                              1);
    text.replace(text.find("log_freq: 1000"), 14, "log_freq: 1");
    TestRun run(without_training(text, "ab"));
    run.train();
    return run.metrics().front().at("train/train_op/loss_l").get<double>();
  };
  CHECK(distance(0) == 0);
  const double far = distance(100);  // the mean of 16 numbers in [0, 100)
  CHECK(far > 10);
  CHECK(far < 90);
}

TEST_CASE("losses are logged by their names, and the sum of a step by its network") {
  std::string text = config(two_steps(""), 2);
  text.replace(text.find("log_freq: 1000"), 14, "log_freq: 1");
  TestRun logged(text);
  logged.train();
  const auto first = logged.metrics().front();
  for (const char* name : {"train/train_op/loss_p", "train/train_op/loss_q",
                           "train/train_op/loss_a_total", "train/train_op/loss_b_total"}) {
    CAPTURE(name);
    CHECK(first.contains(name));
  }
}

TEST_CASE("a loss has one number in all iterations; its penalty, and the total, where they are") {
  TestRun run(R"(
iterator: ExtensibleTrainer
batch_size: 2
num_steps: 4
log_freq: 1
datasets: {train: {class: RandomTensors, size: 2, tensors: {real: [3, 8, 8], fake: [3, 8, 8]}}}
networks: {d: {which_model: toy_d, nf: 4}}
steps:
  judge:
    training: d
    every: 2
    optimizer_params: {lr: 1.0e-12}
    losses:
      gan_d: {type: discriminator_gan, gan_type: ragan, weight: 1, real: real, fake: fake, gradient_penalty: r1, gradient_penalty_weight: 1000}
)");
  run.train();
  const auto lines = run.metrics();
  const std::string loss = "train/train_op/loss_gan_d";
  double first = 0;
  size_t count = 0;
  for (const auto& line : lines) {
    if (!line.contains(loss)) continue;
    const double number = line.at(loss);
    if (count == 0) first = number;
    CHECK(number == doctest::Approx(first).epsilon(1e-5));
    CHECK(line.contains(loss + "_d_fake_diff"));
    const bool trains = count % 2 == 0;
    CHECK(line.contains(loss + "_gradient_penalty") == trains);
    CHECK(line.contains("train/train_op/loss_d_total") == trains);
    if (trains) {
      const double penalty = line.at(loss + "_gradient_penalty");
      CHECK(penalty > 0.1);
      CHECK(line.at("train/train_op/loss_d_total").get<double>() ==
            doctest::Approx(number + penalty).epsilon(1e-5));
    }
    ++count;
  }
  CHECK(count == 4);
}

}  // namespace extensible_steps_test
}  // namespace stepop
