// Trainings by ExtensibleTrainer: when its parts run, what they change, and what a resume gives.
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "iterators/extensible/injector.h"
#include "iterators/extensible/loss.h"
#include "runtime/base/error.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace extensible_steps_test {

using namespace extensible;

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

/// Two networks from x, [4], to [2].
constexpr const char* kBase = R"(
iterator: ExtensibleTrainer
num_threads: 1
batch_size: 4
log_freq: 1000
seed: 3
datasets: {train: {class: RandomTensors, size: 40, tensors: {x: [4], y: [2]}}}
networks:
  a: {class: MLP, inputs: 4, hidden: [6], classes: 2}
  b: {class: MLP, inputs: 2, hidden: [6], classes: 2}
)";

std::string config(const std::string& steps, int64_t num_steps = 10) {
  return fmt::format("{}num_steps: {}\n{}", kBase, num_steps, steps);
}

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

constexpr const char* kTwoSteps = R"(
steps:
  first:
    training: a
    optimizer_params: {lr: 0.05}
    injectors: {made: {type: generator, generator: a, in: x, out: made}}
    losses: {p: {type: pix, criterion: l2, real: y, fake: made, weight: 1}}
  second:
    training: b
    FIRST
    optimizer_params: {lr: 0.05}
    injectors: {of_b: {type: generator, generator: b, in: made, out: of_b}}
    losses: {q: {type: pix, criterion: l2, real: y, fake: of_b, weight: 1}}
)";

std::string two_steps(const std::string& of_second) {
  std::string text = kTwoSteps;
  return text.replace(text.find("FIRST"), 5, of_second);
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

/// What is wrong with steps, as the checks before a training say it.
std::string mistake(const std::string& steps) {
  return message_of([&] {
    TestRun run(config(steps));
    run.session.check();
  });
}

std::string with_change(const std::string& from, const std::string& to) {
  std::string text = two_steps("");
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("what nothing makes, what is made twice or too late is found before the first batch") {
  CHECK(mistake(two_steps("")) == "no error");
  CHECK(mistake(with_change("fake: made", "fake: maed")) ==
        "test.yaml:18: steps/first/losses/p/fake: nothing makes \"maed\"; there are: x, made, y, "
        "index; did you mean made?");
  CHECK(mistake(with_change("in: x, out: made", "in: of_b, out: made")) ==
        "test.yaml:17: steps/first/injectors/made/in: in iteration 0 nothing has made \"of_b\" "
        "before: it is made by test.yaml:23: steps/second/injectors/of_b, which comes later, or is "
        "off then; there are: y, x, index");
  CHECK(
      mistake(with_change("of_b: {type: generator, generator: b, in: made, out: of_b",
                          "of_b: {type: generator, generator: b, in: y, out: made")) ==
      "test.yaml:23: steps/second/injectors/of_b/out: \"made\" is made twice in iteration 0: first "
      "by test.yaml:17: steps/first/injectors/made; give one of them another name");
  CHECK(mistake(with_change("out: of_b", "out: x"))
            .find("\"x\" is made twice in iteration 0: first by the batch") != std::string::npos);
  // Only in iterations that a gate leaves.
  CHECK(mistake(with_change("in: x, out: made", "in: x, out: made, after: 1000"))
            .starts_with("test.yaml:18: steps/first/losses/p/fake: in iteration 0 nothing has made "
                         "\"made\" before: it is made by test.yaml:17: "
                         "steps/first/injectors/made, which comes later, or is off then"));
  CHECK(mistake(with_change("in: x, out: made", "in: x, out: made, every: 7"))
            .find("in iteration 1 nothing has made \"made\"") != std::string::npos);
  CHECK(mistake(two_steps("step_outputs: [nothing]")) ==
        "test.yaml:19: steps/second: step_outputs: the step does not make \"nothing\"; it makes: "
        "of_b");
  CHECK(mistake(with_change("training: b", "training: b\n    after: 4\n    requires: [late]"))
            .find("steps/second/requires: nothing makes \"late\"; there are: x, y, index, made") !=
        std::string::npos);
}

TEST_CASE("mistakes in a step name the place and what there is") {
  CHECK(mistake(with_change("generator: b", "generator: c"))
            .starts_with("test.yaml:23: steps/second/injectors/of_b/generator: no network \"c\"; "
                         "there are: a, b"));
  CHECK(mistake(with_change("training: b", "training: bb"))
            .find("steps/second/training: no network \"bb\"; there are: a, b") !=
        std::string::npos);
  CHECK(mistake(with_change("type: pix", "type: pxi"))
            .find("steps/first/losses/p/type: unknown loss term \"pxi\"; known are: pix, ") !=
        std::string::npos);
  CHECK(mistake(with_change("criterion: l2", "criterion: l3"))
            .find("steps/first/losses/p/criterion: expected l1, l2 or cosine, found \"l3\"") !=
        std::string::npos);
  CHECK(mistake(with_change(", weight: 1}", "}")).find("steps/first/losses/p/weight: missing") !=
        std::string::npos);
  CHECK(mistake(with_change("optimizer_params: {lr: 0.05}",
                            "optimizer: adamm\n    "
                            "optimizer_params: {lr: 0.05}"))
            .find("steps/first/optimizer: unknown optimizer \"adamm\"; there are: adam, adamw, "
                  "lamb, lars, sgd; did you mean adam?") != std::string::npos);
  CHECK(mistake(with_change("    optimizer_params: {lr: 0.05}\n", ""))
            .find("steps/first/optimizer_params: missing: the losses of the step would train "
                  "nothing") != std::string::npos);
  CHECK(mistake(with_change("type: generator, generator: a", "type: generator, generatr: a"))
            .find("steps/first/injectors/made/generator: missing") != std::string::npos);
  CHECK(mistake(with_change("real: y, fake: made", "real: y, fake: made, wieght: 2"))
            .find("unknown key \"steps/first/losses/p/wieght\": did you mean "
                  "\"steps/first/losses/p/weight\"?") != std::string::npos);
  CHECK(mistake(two_steps("every: 0")).find("steps/second/every: ") != std::string::npos);
  CHECK(mistake(two_steps("after: 5\n    before: 3"))
            .find("steps/second/before: it is never on: after is 5, before is 3") !=
        std::string::npos);
  CHECK(mistake("steps: {s: {training: a, optimizer_params: null}}") ==
        "test.yaml:9: networks/a: no step trains it; trainable: false says that it is meant so");
  CHECK(mistake("steps: []") ==
        "test.yaml:12: steps: expected a map of steps, such as {generator: {training: generator, "
        "injectors: {...}, losses: {...}}}");
}

TEST_CASE("an error in a part names the part") {
  const std::string message = message_of([] {
    TestRun run(config(with_change("criterion: l2, real: y", "criterion: l2, real: x"), 1));
    run.train();
  });
  CHECK(message.find("test.yaml:18: steps/first/losses/p (pix): expected two tensors of one shape, "
                     "found ") != std::string::npos);
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

}  // namespace extensible_steps_test
}  // namespace stepop
