// Mistakes of an iterator, each with what a run is refused with before it has a folder, or what it
// tells in its first steps; iterators/MISTAKES.md lists them.
#include "runtime/train/checks/parameter_ownership.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>

#include "runtime/train/checks/update_watch.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace parameter_ownership_test {

/// An encoder with a head of its own; what its config names goes wrong.
class TestForgetful : public Iterator {
 public:
  explicit TestForgetful(const Context& context)
      : Iterator(context),
        fault_(config().get("fault", "none")),
        encoder_(context.network<Network>("encoder")),
        head_(context.network<Network>("head")),
        own_(torch::nn::Linear(3, 3)) {
    config().has("head_optimizer");  // known, whether it is used or not
    if (fault_ == "moved") encoder_->register_parameter("late", at::zeros({4}, meta()));
    if (fault_ == "frozen" || fault_ == "frozen head") freeze();
    if (fault_ == "by hand") context.train_by_hand({"head"});
    const bool trains_head = fault_ == "none" || fault_ == "not called" || fault_ == "detached" ||
                             fault_ == "op device" || fault_ == "device";
    NamedParameters parameters = context.networks.parameters({"encoder"});
    if (fault_ == "half") parameters.pop_back();
    if (fault_ == "own" || fault_ == "own tracked" || fault_ == "own copied") {
      for (const auto& item : own_->named_parameters()) {
        parameters.emplace_back("own." + item.key(), item.value());
      }
    }
    if (fault_ == "own tracked") context.track("own", *own_);
    if (fault_ == "own copied") {
      context.track(
          "own",
          [this] {
            return State{{"w", own_->weight.clone()}, {"b", own_->bias.clone()}};
          },
          [](const State&) {});
    }
    if (fault_ == "bystander") context.track("own", *own_);
    if (fault_ == "frozen stranger") own_->weight.requires_grad_(false);
    if (fault_ == "frozen stranger") own_->bias.requires_grad_(false);
    if (fault_ == "unused" || fault_ == "both" || uses_own() || fault_ == "penalty" ||
        fault_ == "anew" || fault_ == "points" || fault_ == "not made") {
      if (fault_ == "both") head_update_ = &context.update("head_optimizer", {"head"});
      update_ = &context.update("optimizer", {"encoder", "head"});
      return;
    }
    update_ = &context.update_of("optimizer", parameters);
    if (trains_head) head_update_ = &context.update("head_optimizer", {"head"});
  }

  StepOps step_op(const Batch& batch) override {
    if (fault_ == "device") batch["image"] + at::zeros({3}, meta());
    if (fault_ == "not made") null_->forward(batch["image"]);
    // A leaf that this step makes, as a gradient penalty does.
    const auto image =
        fault_ == "penalty" ? batch["image"].detach().requires_grad_() : batch["image"];
    auto hidden = encoder_->forward(image);
    if (uses_own()) hidden = own_->forward(hidden);
    // An input that is no example's: the loss takes its gradient, or trains with it.
    if (fault_ == "points") hidden = hidden + at::ones({1, 3}).requires_grad_();
    if (fault_ == "anew") hidden = torch::nn::Linear(3, 3)->forward(hidden);
    const auto logits = head_->forward(fault_ == "detached" ? hidden.detach() : hidden);
    const auto loss = at::cross_entropy_loss(logits, batch["class"]);
    return {.train_op =
                [=, this] {
                  if (fault_ == "op device") logits + at::zeros({3}, meta());
                  if (fault_ == "unused") return update_->step(hidden.sum());
                  if (uses_own() || fault_ == "penalty" || fault_ == "anew" || fault_ == "points")
                    return update_->step(loss);
                  update_->backward(loss, /*retain_graph=*/true);
                  update_->apply();
                  if (head_update_ != nullptr && fault_ != "not called") head_update_->step(loss);
                },
            .log_op =
                [=] {
                  return Logs{.scalars = {{"loss", loss}}};
                }};
  }

  const at::Tensor& own_weight() const { return own_->weight; }

 private:
  bool uses_own() const {
    return fault_ == "bystander" || fault_ == "stranger" || fault_ == "frozen stranger";
  }

  static at::TensorOptions meta() { return at::TensorOptions(at::kMeta); }

  void freeze() {
    auto parameters = head_->parameters();
    if (fault_ == "frozen head") parameters.pop_back();
    for (auto& parameter : parameters) parameter.requires_grad_(false);
  }

  std::string fault_;
  std::shared_ptr<Network> encoder_, head_;
  torch::nn::Linear own_;
  torch::nn::Linear null_{nullptr};
  Update* update_;
  Update* head_update_ = nullptr;
};

STEPOP_REGISTER_ITERATOR(TestForgetful, {"For tests.", {}});

/// Two layers, of which it registers those that its config names.
class TestUnregistered : public Network {
 public:
  explicit TestUnregistered(const Config& params) {
    const auto registers = params.get<std::string>("registers");
    if (registers != "none") register_module("first", first_);
    if (registers == "both") register_module("second", second_);
    if (registers == "meta") register_parameter("late", at::zeros({3}, at::kMeta));
    if (registers == "moved") first_->to(at::kMeta);
    if (registers == "throws") at::zeros({2, 3}).mm(at::zeros({2, 3}));
  }
  at::Tensor forward(const at::Tensor& input) override {
    return first_->forward(input.flatten(1)) + second_->forward(input.flatten(1));
  }

 private:
  torch::nn::Linear first_{9, 3}, second_{9, 3};
};

STEPOP_REGISTER_MODEL(TestUnregistered, {"For tests.", {{"registers", "", "which layers"}}});

std::string config(const std::string& fault, int64_t steps = 2) {
  return "iterator: TestForgetful\ndevice: cpu\nfault: " + fault +
         "\nnum_steps: " + std::to_string(steps) + R"(
networks:
  encoder: {class: MLP, inputs: 9, hidden: [], classes: 3}
  head: {class: MLP, inputs: 3, hidden: [4], classes: 3}
datasets: {train: {class: Synthetic, size: 12, shape: [1, 3, 3], classes: 3}}
batch_size: 4
n_data_processes: 0
optimizer: SGD
head_optimizer: SGD
)";
}

/// What a training is refused with before it has a folder.
std::string refused(const std::string& fault) {
  return message_of([&] {
    Session session(test_config(config(fault)), true, false, true);
    session.check();
  });
}

/// What a training warns of, `trained` steps after its beginning.
std::vector<std::string> warned(const std::string& fault, int64_t steps, int64_t resumed_at = 0) {
  TestRun run(config(fault, steps));
  run.train();
  UpdateWatch watch(run.session.context(), resumed_at, steps);
  std::vector<std::string> all;
  for (int64_t step = resumed_at + 1; step <= steps; ++step) {
    for (const auto& text : watch.after_step(step)) {
      all.push_back(std::to_string(step) + " " + text);
    }
  }
  return all;
}

const std::string kWays =
    "  to keep them as they are: for (auto& parameter : network->parameters()) "
    "parameter.requires_grad_(false)\n"
    "  to train them by an optimizer that is no Update: context.train_by_hand({\"";

TEST_CASE("a parameter that no optimizer holds is named with what would help") {
  CHECK(refused("forgotten") ==
        "no optimizer holds parameters of the network \"head\" that require gradients: "
        "layers.0.weight, layers.0.bias, layers.1.weight, layers.1.bias\n"
        "  to train them: context.update(\"head_optimizer\", {\"head\"})\n" +
            kWays + "head\"})");
  CHECK(refused("half") ==
        "no optimizer holds parameters of the network \"encoder\" that require gradients: "
        "layers.0.bias; \"optimizer\" holds 1 of its 2\n"
        "  to train them: context.update(\"optimizer\", {\"encoder\"})\n" +
            kWays + "encoder\"})");
  CHECK(refused("frozen head") ==
        "no optimizer holds parameters of the network \"head\" that require gradients: "
        "layers.1.bias\n"
        "  to train them: context.update(\"head_optimizer\", {\"head\"})\n" +
            kWays + "head\"})");
  CHECK(refused("none") == "no error");
  CHECK(refused("frozen") == "no error");
  CHECK(refused("by hand") == "no error");
  // Nothing is trained in an evaluation.
  Session session(test_config(config("forgotten")), /*train=*/false, false, true);
  CHECK_NOTHROW(check_devices(session.context()));
}

TEST_CASE("a parameter that is trained and that no checkpoint would hold") {
  CHECK(refused("own").starts_with("no optimizer holds parameters of the network \"head\""));
  Session session(test_config(config("own")), true, false, true);
  CHECK(message_of([&] { check_all_saved(session.context()); }) ==
        "optimizer trains what no checkpoint would hold: own.weight, own.bias. For a module that "
        "the iterator makes, context.track(\"name\", *module) makes them part of the run's state; "
        "a network of the config is tracked by itself");
  for (const char* fault : {"own tracked", "own copied"}) {
    Session sound(test_config(config(fault)), true, false, true);
    CHECK(message_of([&] { check_all_saved(sound.context()); }) == "no error");
  }
}

TEST_CASE("two updates over the same parameters are told") {
  const auto warnings = [](const std::string& fault, bool train) {
    return Session(test_config(config(fault)), train, false, true).warnings();
  };
  CHECK(warnings("both", true) ==
        "head_optimizer and optimizer both train head.layers.0.weight, head.layers.0.bias, "
        "head.layers.1.weight, head.layers.1.bias: each moves them by its own loss. An update "
        "takes the networks that it is to change, and no others that its loss passes through");
  CHECK(warnings("both", false) == "");
  CHECK(warnings("none", true) == "");
}

TEST_CASE("a tensor on another device") {
  CHECK(refused("moved") ==
        "late of the network \"encoder\" is on meta, the run on cpu: the runtime moves "
        "networks before it builds the iterator; what is made later has to be made there, with "
        "at::TensorOptions(context.device)");
  const std::string hint =
      "\nbatches and networks are on the device of the run: a tensor that the iterator makes has "
      "to be made there, as in at::zeros({2}, batch[\"image\"].options()), or moved: "
      ".to(context().device)";
  const std::string what =
      "Expected all tensors to be on the same device, but found at least two devices, meta and "
      "cpu!";
  CHECK(refused("device") == "train/step_op: " + what + hint);
  CHECK(message_of([] { TestRun(config("op device")).train(); }) ==
        "train/train_op: " + what + hint +
            "\nin the first step, with the examples 1, 9, 4, 10 of datasets/train");
}

TEST_CASE("an update whose loss depends on none of its parameters ends the run at its first step") {
  TestRun run(config("detached"));
  CHECK(message_of([&] { run.train(); }) ==
        "train/train_op: optimizer: an update without any gradient: the loss depends on none of "
        "its parameters, which are: layers.0.weight, layers.0.bias\n"
        "in the first step, with the examples 1, 9, 4, 10 of datasets/train");
  CHECK(run.checkpoints().empty());
}

TEST_CASE("parameters that the loss never reaches are told, other than those that say so") {
  CHECK((warned("unused", 3) ==
         std::vector<std::string>{
             "3 optimizer: 4 of 6 parameters had no gradient in the first 3 steps: the loss does "
             "not depend on head.layers.0.weight, head.layers.0.bias, head.layers.1.weight, "
             "head.layers.1.bias. Is that part of the network used, and not cut off by detach()? "
             "requires_grad_(false) says that it is meant so"}));
  TestRun run(config("unused", 2));
  auto head = run.session.context().network<Network>("head")->parameters();
  for (auto& parameter : head) parameter.requires_grad_(false);
  run.train();
  CHECK(UpdateWatch(run.session.context(), 0, 2).after_step(2).empty());
}

/// What a checked training of two steps ends with.
std::string trained(const std::string& yaml) {
  return message_of([&] {
    TestRun run(yaml);
    run.session.check();
    run.train();
  });
}

const std::string kStrangers =
    "\n  a layer of a network: register it in the constructor, layer_ = register_module(\"layer\", "
    "torch::nn::Linear(2, 1)); else it is neither trained nor saved\n"
    "  a module that the iterator makes: context.track(\"name\", *module); context.update_of() "
    "trains it\n"
    "  what is to stay as it is: requires_grad_(false) on its parameters";

TEST_CASE("a layer that was not registered ends the run in its second step") {
  const std::string rest =
      "iterator: Classifier\ndevice: cpu\n"
      "datasets: {train: {class: Synthetic, size: 12, shape: [1, 3, 3], classes: 3}}\n"
      "batch_size: 4\nnum_steps: 3\noptimizer: SGD\n";
  CHECK(trained(rest + "model: {class: TestUnregistered, registers: one}") ==
        "train/train_op: optimizer: the loss depends on tensors that no update trains and no "
        "checkpoint holds: float32 [3, 9], float32 [3]" +
            kStrangers + "\nafter step 1, with the examples 8, 5, 6, 0 of datasets/train");
  CHECK(trained(rest + "model: {class: TestUnregistered, registers: both}") == "no error");
  CHECK(trained(rest + "model: {class: TestUnregistered, registers: none}") ==
        "optimizer: nothing to train: the network model has no parameters. The constructor of a "
        "network registers each layer: layer_ = register_module(\"layer\", torch::nn::Linear(2, "
        "1)) (torch.jit.freeze makes constants of parameters)");
}

TEST_CASE("a module of the iterator that is neither trained nor tracked ends the run") {
  CHECK(trained(config("stranger"))
            .starts_with("train/train_op: optimizer: the loss depends on tensors that no update "
                         "trains and no checkpoint holds: float32 [3, 3], float32 [3]" +
                         kStrangers));
  CHECK(trained(config("frozen stranger")) == "no error");
  CHECK(trained(config("bystander")) == "no error");
  CHECK(trained(config("penalty")) == "no error");
}

TEST_CASE("a layer that each step makes anew is reported, once") {
  const auto log_of = [](const std::string& fault) {
    TestRun run(config(fault, 4));
    run.session.check();
    const ScratchFolder folder;
    run.train({}, folder.path("log.txt"));
    return read_bytes(folder.path("log.txt"));
  };
  const std::string text =
      "optimizer: the loss depends on layers that each step makes anew: float32 [3, 3], float32 "
      "[3]. They are never trained: make them in the constructor, layer_ = "
      "register_module(\"layer\", torch::nn::Linear(2, 1)); what is not to be trained needs no "
      "gradient, requires_grad_(false) on its parameters\n";
  const std::string log = log_of("anew");
  const size_t at = log.find(text);
  CHECK(at != std::string::npos);
  CHECK(log.find("makes anew", at + text.size()) == std::string::npos);
  CHECK(log_of("penalty").find("makes anew") == std::string::npos);
  CHECK(log_of("points").find("makes anew") == std::string::npos);
}

TEST_CASE("a module that no update holds gets no gradient from the only update") {
  TestRun run(config("bystander"));
  run.train();
  const auto& iterator = dynamic_cast<TestForgetful&>(run.session.iterator());
  CHECK_FALSE(iterator.own_weight().grad().defined());
}

TEST_CASE("a layer that was never made") {
  CHECK(refused("not made")
            .starts_with("train/step_op: Accessing empty ModuleHolder\n"
                         "a layer was declared, as in torch::nn::Linear layer_{nullptr}, and never "
                         "made: layer_ = "
                         "register_module(\"layer\", torch::nn::Linear(2, 1)) in the constructor"));
}

TEST_CASE("a network that cannot be made says where it stands in the config") {
  const auto made = [](const std::string& registers) {
    return message_of([&] {
      Session(test_config("iterator: Classifier\ndevice: cpu\n"
                          "datasets: {train: {class: Synthetic, shape: [1, 3, 3]}}\nbatch_size: 4\n"
                          "num_steps: 1\noptimizer: SGD\nmodel:\n  class: TestUnregistered\n"
                          "  registers: " +
                          registers + "\n"),
              true, false, false);
    });
  };
  CHECK(
      made("meta") ==
      "test.yaml:7: model: TestUnregistered: on the device meta, which holds no values: late. The "
      "constructor has to make each layer with values; the runtime moves the network to cpu");
  CHECK(made("moved").starts_with(
      "test.yaml:7: model: TestUnregistered: Attempted to call `variable.set_data(tensor)`"));
  const std::string thrown = made("throws");  // LibTorch 2.15 begins its text with `mm: `
  CHECK(thrown.starts_with("test.yaml:7: model: TestUnregistered: m"));
  CHECK(thrown.ends_with("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"));
}

TEST_CASE("an update that is never made is told after the first 100 steps, or at the end") {
  const std::string told =
      "head_optimizer: no update in the first 2 steps: no train op that ran called its step() or "
      "apply()";
  CHECK((warned("not called", 2) == std::vector<std::string>{"2 " + told}));
  CHECK((warned("not called", 120) ==
         std::vector<std::string>{"100 head_optimizer: no update in the first 100 steps: no train "
                                  "op that ran called its step() or apply()"}));
  CHECK((warned("not called", 9, 8) ==
         std::vector<std::string>{"9 head_optimizer: no update in the first step: no train op that "
                                  "ran called its step() or apply()"}));
  CHECK(warned("none", 2).empty());
}

TEST_CASE("the guide has the messages as they are") {
  const std::string guide = read_bytes(STEPOP_SOURCE_DIR "/iterators/MISTAKES.md");
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  Session own(test_config(config("own")), true, false, true);
  for (const std::string& text : {refused("forgotten"), refused("half"), refused("moved"),
                                  message_of([&] { check_all_saved(own.context()); }),
                                  message_of([] { TestRun(config("detached")).train(); }),
                                  warned("not called", 120).at(0).substr(4)}) {
    CAPTURE(text);
    CHECK(guide.find("`" + first_line(text) + "`") != std::string::npos);
  }
  const std::string unused = warned("unused", 120).at(0).substr(4);
  CHECK(guide.find(unused.substr(0, unused.find("head.layers.0.bias"))) != std::string::npos);
}

}  // namespace parameter_ownership_test
}  // namespace stepop
