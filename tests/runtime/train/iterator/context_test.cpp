#include "runtime/train/iterator/context.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/session/session.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace context_test {

constexpr const char* kData =
    "datasets: {train: {class: Synthetic, shape: [1, 3, 3]}}\n"
    "batch_size: 4\nnum_steps: 1\n";

/// Tracks one value of each kind and does nothing else.
class TestTracking : public Iterator {
 public:
  explicit TestTracking(const Context& context) : Iterator(context) {
    context.track("whole", whole);
    context.track("real", real);
    context.track("tensor", tensor);
    context.track("later", later);
    context.track(
        "own",
        [this] {
          return State{{"text", at::full({}, static_cast<int64_t>(text.size()))}};
        },
        [this](const State& state) {
          text.assign(static_cast<size_t>(state.at("text").item<int64_t>()), 'x');
        });
  }
  StepOps step_op(const Batch&) override { return {}; }

  int64_t whole = 1;
  double real = 0.5;
  at::Tensor tensor = at::zeros({2});
  at::Tensor later;
  std::string text = "ab";
};

STEPOP_REGISTER_ITERATOR(TestTracking, {"For tests.", {}});

TestTracking& tracking(Session& session) { return dynamic_cast<TestTracking&>(session.iterator()); }

const std::string kConfig = std::string("iterator: TestTracking\ndevice: cpu\n") + kData;

TEST_CASE("whatever an iterator tracks comes back, a tensor that it makes later as well") {
  Session first(test_config(kConfig), true, false, false);
  TestTracking& before = tracking(first);
  before.whole = -7'000'000'000;
  before.real = 1.0 / 3;
  before.tensor.fill_(4);
  before.later = at::full({3}, 2);
  before.text = "abcd";
  const Checkpoint checkpoint{first.context().tracker.save(), {}, ""};

  Session second(test_config(kConfig), true, false, false);
  TestTracking& after = tracking(second);
  const at::Tensor same_memory = after.tensor;
  second.resume(checkpoint, "a.safetensors");
  CHECK(after.whole == -7'000'000'000);
  CHECK(after.real == 1.0 / 3);
  CHECK(at::equal(after.tensor, at::full({2}, 4.0F)));
  CHECK(same_memory.is_same(after.tensor));
  CHECK(at::equal(after.later, at::full({3}, 2)));
  CHECK(after.text == "xxxx");
}

TEST_CASE("a checkpoint that does not fit what is tracked is refused with its path") {
  Session session(test_config(kConfig), true, false, false);
  const auto refused = [&](const std::string& name, const at::Tensor& value) {
    Checkpoint checkpoint{session.context().tracker.save(), {}, ""};
    if (value.defined()) {
      checkpoint.tensors[name] = value;
    } else {
      checkpoint.tensors.erase(name);
    }
    return message_of([&] { session.resume(checkpoint, "a.safetensors"); });
  };
  const std::string help =
      ". Give the config that it was trained with; or start a new run with its weights: -r";
  CHECK(refused("tensor.value", at::zeros({3})) ==
        "a.safetensors: tensor: float32 [3] in the checkpoint, float32 [2] here" + help);
  CHECK(refused("tensor.value", at::zeros({2}, at::kDouble)) ==
        "a.safetensors: tensor: float64 [2] in the checkpoint, float32 [2] here" + help);
  CHECK(refused("whole.value", at::zeros({3})) ==
        "a.safetensors: whole: expected one number, found a tensor [3]");
  for (const char* name : {"whole.value", "tensor.value", "random.cpu"}) {
    CHECK(refused(name, {}) ==
          "a.safetensors: " + std::string(name) + ": missing from the checkpoint" + help);
  }
  CHECK(refused("stranger.value", at::zeros({3})) ==
        "a.safetensors: it holds what this run does not track: stranger" + help);
  CHECK(refused("later.value", {}) == "no error");
}

TEST_CASE("a network is taken by its name and type") {
  const Session session(
      test_config(
          std::string("iterator: TestTracking\ndevice: cpu\n"
                      "networks: {a: {class: MLP, inputs: 9}, b: {class: MLP, inputs: 4}}\n") +
          kData),
      true, false, false);
  const Context& context = session.context();
  CHECK(context.network<Network>("a") != context.network<Network>("b"));
  CHECK(context.networks.descriptions() ==
        std::vector<std::string>({"a: MLP, 2,570 parameters", "b: MLP, 1,930 parameters"}));
  CHECK(message_of([&] { context.network<Network>("c"); }) ==
        "the iterator asks for the network \"c\", which the config does not give; there are: a, b");
  CHECK(message_of([&] { context.network<Network>(); }) ==
        "the iterator asks for the network \"model\", which the config does not give; there are: "
        "a, b");
  struct Other : torch::nn::Module {};
  CHECK(message_of([&] {
          context.network<Other>("a");
        }).starts_with("the iterator takes the network \"a\" as a stepop::"));
  const NamedParameters both = context.networks.parameters({"a", "b"});
  CHECK(both.front().first == "a.layers.0.weight");
  CHECK(context.networks.parameters({"b"}).front().first == "layers.0.weight");
}

TEST_CASE("a loss leaves nothing in networks that the update does not train") {
  const std::string config = std::string(
                                 "iterator: TestTracking\ndevice: cpu\noptimizer: SGD\n"
                                 "networks: {a: {class: MLP, inputs: 9, classes: 9}, "
                                 "b: {class: MLP, inputs: 9}}\n") +
                             kData;
  const Session session(test_config(config), true, false, /*allow_unknown=*/true);
  const Context& context = session.context();
  const auto first = context.network<Network>("a"), second = context.network<Network>("b");
  const auto loss = [&] { return second->forward(first->forward(at::full({2, 9}, 1.0F))).sum(); };

  Update& whole = context.update("optimizer", {"a", "b"});  // alone: it trains all that there is
  whole.backward(loss());
  CHECK(first->parameters().front().grad().defined());
  whole.apply();

  const Session other(test_config(config), true, false, true);
  const auto trained = other.context().network<Network>("a");
  const auto kept = other.context().network<Network>("b");
  Update& part = other.context().update("optimizer", {"a"});
  part.backward(kept->forward(trained->forward(at::full({2, 9}, 1.0F))).sum());
  CHECK(trained->parameters().front().grad().defined());
  CHECK_FALSE(kept->parameters().front().grad().defined());
}

TEST_CASE("a config gives one model or several networks, not both") {
  CHECK(message_of([] {
          Session(test_config(
                      std::string(
                          "iterator: TestTracking\ndevice: cpu\nmodel: {class: MLP, inputs: 9}\n"
                          "networks: {a: {class: MLP, inputs: 9}}\n") +
                      kData),
                  true, false, false);
        }) == "test.yaml:4: networks: give either model or networks, found both");
}

TEST_CASE("what a run tracks must have a name of its own") {
  Session session(test_config(kConfig), true, false, false);
  int64_t value = 0;
  CHECK(message_of([&] { session.context().track("whole", value); }) ==
        "\"whole\" is tracked twice; give the second another name");
  CHECK(message_of([&] { session.context().track("a.b", value); }) ==
        "cannot track \"a.b\": a name must not be empty or contain a dot");
}

TEST_CASE("names under which the runtime tracks") {
  const std::string config =
      std::string(
          "iterator: TestTracking\ndevice: cpu\nmodel: {class: MLP, inputs: 9}\n"
          "a: {optimizer: SGD}\n") +
      kData;
  Session session(test_config(config), true, false, true);
  const Context& context = session.context();
  context.update("a/optimizer");
  int64_t value = 0;
  const auto refused = [&](const std::string& name) {
    return message_of([&] { context.track(name, value); });
  };
  const auto is_taken = [](const std::string& name, const std::string& by) {
    return "\"" + name + "\" is the name under which the runtime itself tracks " + by +
           "; give yours another name";
  };
  CHECK(refused("model") == is_taken("model", "the network"));
  CHECK(refused("a_optimizer") == is_taken("a_optimizer", "the update"));
  CHECK(refused("ema_model") == is_taken("ema_model", "the averages"));
  CHECK(refused("random") == is_taken("random", "the random generators"));
  CHECK(refused("train_means") == is_taken("train_means", "what train ops returned"));
  CHECK(refused("stop_when") == is_taken("stop_when", "the best value of the metric"));
  CHECK(refused("ema_mine") == "no error");
  CHECK(
      message_of([&] { context.update("a/optimizer"); }) ==
      "the update \"a/optimizer\" is made twice; give the second a part of the config of its own, "
      "such as \"a/optimizer_2\"");
}

TEST_CASE("an update of nothing") {
  const Session session(
      test_config(std::string("iterator: TestTracking\ndevice: cpu\noptimizer: SGD\n"
                              "model: {class: MLP, inputs: 9}\n") +
                  kData),
      true, false, true);
  const Context& context = session.context();
  for (auto& parameter : context.network<Network>()->parameters()) {
    parameter.requires_grad_(false);
  }
  CHECK(message_of([&] { context.update(); }) ==
        "optimizer: nothing to train: no parameter of the network model requires a gradient");
}

TEST_CASE("a module of the iterator's own is tracked as a network is") {
  const auto session = [] {
    return std::make_unique<Session>(test_config(kConfig), true, false, false);
  };
  const auto module = [] {
    return models().build(test_config("model: {class: MLP, inputs: 9}"), "model");
  };
  const auto first = session(), second = session();
  const auto own = module(), other = module();
  first->context().track("head", *own);
  second->context().track("head", *other);
  const State saved = first->context().tracker.save();
  CHECK(saved.contains("head.layers.0.weight"));
  second->context().tracker.load(saved);
  CHECK(at::equal(own->parameters()[0], other->parameters()[0]));
}

}  // namespace context_test
}  // namespace stepop
