#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "iterators/trainer/loss_model.h"
#include "runtime/tools/trial/repeat_check.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace adversarial_test {

/// Two linear layers, each with a loss of its own that also depends on the other.
class Rivals : public AdversarialModel {
 public:
  explicit Rivals(const Config& params) : chooses_(params.get("chooses", true)) {
    maker_ = register_module("maker", torch::nn::Linear(4, 4));
    judge_ = register_module("judge", torch::nn::Linear(4, 1));
  }
  void focus_main() override {
    if (chooses_) train_only({"maker"});
  }
  void focus_disc() override {
    if (chooses_) train_only({"judge"});
  }
  LossOutput forward(const Batch& batch) override {
    ++passes;
    const at::Tensor judged = judge_->forward(maker_->forward(batch["x"])).square().mean();
    return has_main_focus() ? judged : -judged;
  }

  static inline int passes = 0;

 private:
  bool chooses_;
  torch::nn::Linear maker_{nullptr}, judge_{nullptr};
};
STEPOP_REGISTER_MODEL(Rivals);

/// Epochs of 3 steps, a checkpoint after each.
std::string rivals(const std::string& more, const std::string& model = "Rivals") {
  const bool has_sizes = more.find("batch_size") != std::string::npos;
  return std::string(has_sizes ? "" : "batch_size: 4\nnum_steps: 9\n") + R"(
iterator: AdversarialTrainer
num_threads: 1
ckpt_freq: 1
ckpt_zero: true
log_freq: 1
optimizer: {class: AdamW, lr: 1e-2, weight_decay: 0.1}
datasets: {train: {class: RandomTensors, size: 12, tensors: {x: [4]}}}
model: )" +
         model + "\n" + more;
}

/// Which part changed in each step: `MMJ...`; `b` for both and `-` for none.
std::string phases_of(const TestRun& run, int64_t steps) {
  std::string phases;
  State before = run.checkpoint(0);
  for (int64_t step = 1; step <= steps; ++step) {
    const State after = run.checkpoint(step);
    const auto changed = [&](const std::string& part) {
      return !at::equal(before.at("model." + part + ".weight"),
                        after.at("model." + part + ".weight"));
    };
    const bool maker = changed("maker");
    phases += maker && changed("judge") ? 'b' : maker ? 'M' : changed("judge") ? 'J' : '-';
    before = after;
  }
  return phases;
}

TEST_CASE("phases are counted over the whole training, beyond the ends of epochs") {
  const std::string config = rivals("ratios: [2, 3]");
  TestRun run(config);
  run.session.check();
  run.train();
  CHECK(phases_of(run, 9) == "MMJJJMMJJ");
  CHECK(run.metrics()[1].contains("train/train_op/loss"));
  CHECK_FALSE(run.metrics()[1].contains("train/train_op/discriminator_loss"));
  CHECK(run.metrics()[2].contains("train/train_op/discriminator_loss"));
  const State end = run.checkpoint(9);
  for (const int64_t step : {1, 4, 6}) {  // in the midst of phases
    CAPTURE(step);
    TestRun again(config, run, step);
    again.train();
    CHECK(differences(again.checkpoint(9), end) == "");
  }
}

TEST_CASE("the check before a training tries both phases, and a step of --check its own alone") {
  TestRun run(rivals("ratios: [2, 3]"));
  Rivals::passes = 0;
  run.session.check();
  CHECK(Rivals::passes == 2);
  CHECK(check_repeats(run.session).warning.empty());
  CHECK(Rivals::passes == 2 + 2 * 2);  // two steps, twice
}

TEST_CASE("one part alone trains with the other's number at 0") {
  TestRun main(rivals("ratios: [1, 0]"));
  main.train();
  CHECK(phases_of(main, 9) == "MMMMMMMMM");
  TestRun disc(rivals("ratios: [0, 1]"));
  disc.train();
  CHECK(phases_of(disc, 9) == "JJJJJJJJJ");
}

/// Looks for gradients while batches are accumulated.
class Gradients : public Hook {
 public:
  explicit Gradients(const Context& context) : context_(context) {}
  void after_batch(const Batch&, const OrderedMap<Scalars>&) override {
    if (context_.clock.is_last_micro_batch()) return;  // then they are used up
    const auto model = context_.networks.get("model");
    const auto parameters = model->named_parameters();
    found += parameters["maker.weight"].grad().defined() ? 'M' : '-';
    found += parameters["judge.weight"].grad().defined() ? 'J' : '-';
    found += ' ';
  }
  std::string found;

 private:
  const Context& context_;
};

TEST_CASE("what is frozen gets no gradient, and its optimizer makes no step") {
  for (const bool has_two : {false, true}) {
    CAPTURE(has_two);
    TestRun run(rivals(
        std::string("ratios: [1, 2]\nnum_steps: 6\naccumulate: 2\nbatch_size: 2\n") +
        (has_two ? "discriminator_optimizer: {class: AdamW, lr: 1e-2, weight_decay: 0.1}" : "")));
    Gradients gradients(run.session.context());
    run.train({&gradients});
    CHECK(gradients.found == "M- -J -J M- -J -J ");
    CHECK(phases_of(run, 6) == "MJJMJJ");  // not even by weight decay
    const State end = run.checkpoint(6);
    CHECK(end.at("optimizer.maker.weight.step").item<float>() == 2);
    const std::string of_judge = has_two ? "discriminator_optimizer" : "optimizer";
    CHECK(end.at(of_judge + ".judge.weight.step").item<float>() == 4);
    if (has_two) {
      CHECK(end.at("optimizer.count").item<int64_t>() == 2);
      CHECK(end.at("discriminator_optimizer.count").item<int64_t>() == 4);
    }
  }
}

TEST_CASE("the config may say by the names of sub-modules what trains") {
  const std::string names = "focus: {main: [maker], discriminator: [judge]}\n";
  TestRun named(rivals("ratios: [2, 1]\n" + names, "{class: Rivals, chooses: false}"));
  named.train();
  TestRun chosen(rivals("ratios: [2, 1]"));
  chosen.train();
  CHECK(phases_of(named, 9) == "MMJMMJMMJ");
  CHECK(differences(named.checkpoint(9), chosen.checkpoint(9)) == "");

  const auto error = [](const std::string& more) {
    return message_of([&] { TestRun(rivals(more, "{class: Rivals, chooses: false}")); });
  };
  CHECK(error("").find("model: with the focus on the discriminator all of its parameters are "
                       "trained: override focus_main() and focus_disc(), or name sub-modules in "
                       "the config, focus: {main: [...], discriminator: [...]}; there are: maker, "
                       "judge") != std::string::npos);
  CHECK(error("focus: {main: [maker], discriminator: [juge]}")
            .ends_with("focus/discriminator: no sub-module \"juge\" with parameters in the model "
                       "Rivals; there are: maker, judge"));
  CHECK(error(names + "ratios: [0, 0]")
            .ends_with("ratios: expected two numbers of steps, [main, discriminator], of 0 or more "
                       "and not both 0, such as [1, 1], found [0, 0]"));
  CHECK(error(names + "freeze: [{match: judge}]").find("freeze: AdversarialTrainer says itself") !=
        std::string::npos);
}

TEST_CASE("an autoencoder with KL trains without a discriminator's help until its weight grows") {
  TestRun run(R"(
iterator: AdversarialTrainer
num_threads: 1
batch_size: 4
num_steps: 8
ratios: [1, 1]
log_freq: 1
optimizer: {class: AdamW, lr: 1e-2}
discriminator_optimizer: {class: AdamW, lr: 1e-2}
datasets: {train: {class: RandomTensors, size: 12, tensors: {image: [1, 4, 4]}}}
model:
  class: AdversarialAutoencoder
  autoencoder: {class: AutoencoderKL, image_size: [4, 4], channels: 1, latent_channels: 2, base_channels: 4}
  discriminator: {class: MLP, inputs: 16, hidden: [4], classes: 1}
  adversarial_weight: {class: cosine, from: 0, to: 0.5, start: 4, steps: 2}
sampling:
  pairs: {class: ImageToImage, count: 2, when: 8}
  new: {class: NoiseToImage, count: 2, when: 8}
)");
  run.session.check();
  run.train();
  std::vector<double> weights;
  int with_discriminator = 0;
  for (const auto& line : run.metrics()) {
    if (line.contains("train/train_op/adversarial_weight")) {
      weights.push_back(line["train/train_op/adversarial_weight"]);
    }
    with_discriminator += line.contains("train/train_op/adversarial") ? 1 : 0;
  }
  CHECK(weights == (std::vector<double>{0, 0, 0, 0.5}));  // at steps 0, 2, 4, 6
  CHECK(with_discriminator == 1);
  for (const std::string name : {"pairs/reconstructions", "new/samples"}) {
    CHECK(std::filesystem::exists(run.root() + "/train/train/sample_op/" + name + "_0000008.png"));
  }
}

}  // namespace adversarial_test
}  // namespace stepop
