// What a config of ExtensibleTrainer can get wrong: each ends the start with a sentence that says
// where, what was found, and what helps. Keys of the state, gates and types are in
// steps_mistakes_test.cpp.
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/nn/modules/embedding.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "iterators/extensible/step/left_out.h"
#include "runtime/core/base/error.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace extensible_mistakes_test {

constexpr const char* kConfig = R"(iterator: ExtensibleTrainer
num_threads: 1
batch_size: 4
num_steps: 4
log_freq: 1000
seed: 3
datasets: {train: {class: RandomTensors, size: 40, tensors: {x: [4], y: [2]}}}
networks:
  a: {class: MLP, inputs: 4, hidden: [6], classes: 2}
steps:
  first:
    training: a
    optimizer_params: {lr: 0.05}
    injectors:
      made: {type: generator, generator: a, in: x, out: made}
    losses:
      p: {type: pix, criterion: l2, real: y, fake: made, weight: 1}
)";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kConfig;
  REQUIRE(text.find(from) != std::string::npos);
  return text.replace(text.find(from), from.size(), to);
}

/// What the checks before a training say of a config.
std::string mistake(const std::string& config) {
  return message_of([&] {
    TestRun run(config);
    run.session.check();
  });
}

std::string mistake(const std::string& from, const std::string& to) {
  return mistake(changed(from, to));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a config without a mistake trains") {
  CHECK(mistake(kConfig) == "no error");
  TestRun run(kConfig);
  run.train();
  CHECK(run.metrics().size() > 0);
}

TEST_CASE("a misspelt option is found with its line, wherever it stands") {
  CHECK(contains(mistake("in: x, out: made", "in: x, out: made, gradd: false"),
                 "unknown key \"steps/first/injectors/made/gradd\""));
  CHECK(contains(mistake("weight: 1}", "weight: 1, real_scal: 2}"),
                 "unknown key \"steps/first/losses/p/real_scal\": did you mean "
                 "\"steps/first/losses/p/real_scale\"?"));
  CHECK(contains(mistake("    training: a", "    training: a\n    clip_grad_ep: 1"),
                 "test.yaml:13: unknown key \"steps/first/clip_grad_ep\""));
  CHECK(mistake("    losses:", "    lossess:") ==
        "test.yaml:13: steps/first/optimizer_params: the step has no losses: it would train "
        "nothing; is its key lossess meant to be losses?");
  CHECK(contains(mistake("hidden: [6]", "hiden: [6]"),
                 "unknown key \"networks/a/hiden\": did you mean \"networks/a/hidden\"?"));
  CHECK(contains(mistake("hidden: [6]", "hidden: [6], trainabel: false"),
                 "unknown key \"networks/a/trainabel\": did you mean \"networks/a/trainable\"?"));
  CHECK(contains(mistake("{lr: 0.05}", "{lr: 0.05, beta_1: 0.5}"),
                 "unknown key \"steps/first/optimizer_params/beta_1\": did you mean "
                 "\"steps/first/optimizer_params/beta1\"?"));
  CHECK(contains(mistake("seed: 3", "train: {mega_batch_facto: 2}"),
                 "unknown key \"train/mega_batch_facto\": did you mean "
                 "\"train/mega_batch_factor\"?"));
  CHECK(contains(mistake("seed: 3", "logger: {visuals: [made], visual_debug_rat: 2}"),
                 "unknown key \"logger/visual_debug_rat\""));
  CHECK(contains(mistake("seed: 3", "experiments: [x]"),
                 "experiments of DL-Art-School are Python: write a hook"));
}

TEST_CASE("an option that is missing, or has a wrong value, is named") {
  CHECK(contains(mistake("{lr: 0.05}", "{weight_decay: 0}"),
                 "steps/first/optimizer_params/lr: missing"));
  CHECK(contains(mistake("{lr: 0.05}", "{lr: fast}"), "steps/first/optimizer_params/lr: "));
  CHECK(contains(mistake("{lr: 0.05}", "{lr: -1}"), "steps/first/optimizer_params"));
  CHECK(contains(mistake("type: generator, ", ""), "steps/first/injectors/made/type: missing"));
  CHECK(contains(mistake("type: pix, ", ""), "steps/first/losses/p/type: missing"));
  CHECK(contains(mistake("weight: 1}", "weight: heavy}"), "steps/first/losses/p/weight: "));
  CHECK(contains(mistake("in: x, out: made", "in: x"), "steps/first/injectors/made/out: missing"));
  CHECK(
      contains(mistake("in: x, out: made}",
                       "in: x, out: made}\n      c: {type: concatenate, in: [x, yy], out: c, dim: "
                       "1}"),
               "steps/first/injectors/c/in/1: nothing makes \"yy\""));
  CHECK(contains(mistake("type: generator,", "type: generater,"),
                 "steps/first/injectors/made/type: unknown injector \"generater\": did you mean "
                 "\"generator\"? Known are: "
                 "generator, "));
  CHECK(mistake("    training: a", "    training: [a]") ==
        "test.yaml:12: steps/first/training: expected the name of one network, found a list; write "
        "a step for each");
  CHECK(contains(mistake("      made: {type: generator, generator: a, in: x, out: made}",
                         "      - {type: generator}"),
                 "steps/first/injectors: expected a map of names and components, each with its "
                 "type, found [{type: generator}]"));
}

TEST_CASE("min_loss is refused with the way to say it") {
  const std::string message =
      mistake("      p: {type: pix, criterion: l2, real: y, fake: made, weight: 1}",
              "      p: {type: discriminator_gan, gan_type: gan, real: y, fake: made, weight: 1, "
              "min_loss: 0.5}");
  CHECK(message ==
        "test.yaml:17: steps/first/losses/p/min_loss: is left out: how often a network trains "
        "would depend on a loss that is on the device; every and after of the step say it");
}

TEST_CASE("no_accum is for the first part of a batch: what reads it in the second one is found") {
  const std::string once = changed("in: x, out: made", "in: x, out: made, no_accum: true");
  CHECK(mistake(once) == "no error");  // a batch is one part
  CHECK(
      contains(mistake(once + "train: {mega_batch_factor: 2}\n"),
               "test.yaml:17: steps/first/losses/p/fake: in iteration 0, in the second part of its "
               "batch, nothing has made \"made\" before: it is made by test.yaml:15: "
               "steps/first/injectors/made, which comes later, or is off then; there are: "));
}

TEST_CASE("what step_outputs names may be off: a later step that reads it then is a mistake") {
  const std::string gated = changed(
      "    losses:",
      "      some: {type: direct, in: made, out: some, every: 2}\n    step_outputs: [some]\n"
      "    losses:");
  CHECK(mistake(gated) == "no error");
  TestRun run(gated);
  run.train();
  const std::string later = gated +
                            "  second:\n    training: a\n    injectors: {again: {type: direct, in: "
                            "some, out: again}}\n";
  CHECK(contains(mistake(later),
                 "steps/second/injectors/again/in: in iteration 1 nothing has made \"some\""));
}

TEST_CASE("a picture that nothing makes is a mistake, one that is off now and then is none") {
  CHECK(
      mistake("seed: 3", "logger: {visuals: [maed], visual_debug_rate: 1}") ==
      "test.yaml:6: logger/visuals: nothing makes \"maed\"; there are: x, y, index, made; did you "
      "mean made?");
}

/// Numbers from vectors, by a matrix that another layer has.
class Back : public torch::nn::Module {
 public:
  explicit Back(const at::Tensor& weight) : weight_(register_parameter("weight", weight)) {}
  at::Tensor forward(const at::Tensor& x) const { return at::linear(x, weight_); }

 private:
  at::Tensor weight_;
};

/// Words in and out by one matrix.
class Tied : public Network {
 public:
  explicit Tied(const Config&)
      : words_(register_module("words", torch::nn::Embedding(5, 3))),
        back_(register_module("back", std::make_shared<Back>(words_->weight))) {}
  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor numbers = x.abs().to(at::kLong).remainder(5);
    return back_->forward(words_->forward(numbers)).mean(1).narrow(1, 0, 2);
  }

 private:
  torch::nn::Embedding words_;
  std::shared_ptr<Back> back_;
};
STEPOP_REGISTER(models(), "TestTied",
                [](const Config& params) { return std::make_shared<Tied>(params); });

TEST_CASE("two layers with one weight train by every optimizer") {
  for (const char* optimizer : {"adamw", "sgd", "lamb"}) {
    CAPTURE(optimizer);
    std::string text = changed("{class: MLP, inputs: 4, hidden: [6], classes: 2}", "TestTied");
    text.replace(text.find("    optimizer_params"), 0,
                 fmt::format("    optimizer: {}\n", optimizer));
    CHECK(mistake(text) == "no error");
    TestRun run(text);
    run.train();
  }
}

TEST_CASE("a run with a network that never trains resumes, with the same bits") {
  const std::string text =
      changed("networks:\n",
              "ckpt_freq: 2\nnetworks:\n  frozen: {class: MLP, inputs: 2, hidden: [3], classes: 2, "
              "trainable: false}\n");
  const std::string config = text.substr(0, text.find("    losses:")) +
                             "      look: {type: generator, generator: frozen, in: made, out: "
                             "seen}\n    losses:\n      p: "
                             "{type: pix, criterion: l2, real: y, fake: seen, weight: 1}\n";
  TestRun whole(config);
  const at::Tensor before = whole.session.checkpoint().tensors.at("frozen.layers.0.weight").clone();
  whole.train();
  TestRun rest(config, whole, 2);
  rest.train();
  CHECK(differences(rest.session.checkpoint().tensors, whole.session.checkpoint().tensors) == "");
  CHECK(at::equal(rest.session.checkpoint().tensors.at("frozen.layers.0.weight"), before));
}

std::string page() {
  std::ostringstream text;
  text << std::ifstream(STEPOP_SOURCE_DIR "/iterators/DLAS.md").rdbuf();
  return text.str();
}

TEST_CASE("components of DL-Art-School that are left out say why, and the page has them all") {
  const std::string readme = page();
  for (const auto& each : extensible::left_out_injectors()) {
    CAPTURE(each.name);
    CHECK(mistake("type: generator,", fmt::format("type: {},", each.name)) ==
          fmt::format("test.yaml:15: steps/first/injectors/made/type: \"{}\" is left out: {}",
                      each.name, each.reason));
    CHECK(contains(readme, fmt::format("`{}`", each.name)));
  }
  for (const auto& each : extensible::left_out_losses()) {
    CAPTURE(each.name);
    CHECK(mistake("type: pix,", fmt::format("type: {},", each.name)) ==
          fmt::format("test.yaml:17: steps/first/losses/p/type: \"{}\" is left out: {}", each.name,
                      each.reason));
    CHECK(contains(readme, fmt::format("`{}`", each.name)));
  }
  // Also inside of another one.
  CHECK(contains(mistake("type: generator, generator: a", "type: for_each, subtype: clvp_text"),
                 "\"clvp_text\" is left out: it needs a trained CLVP"));
}

}  // namespace extensible_mistakes_test
}  // namespace stepop
