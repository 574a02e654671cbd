// Modules that are run again in the backward pass, against those that keep everything.

#include "runtime/train/networks/checkpoint_modules.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/measure/tensor_memory.h"
#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/autocast.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/networks/sync_batch_norm.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace checkpoint_modules_test {

/// Convolution, batch normalization, dropout, and whatever a test lets it do besides.
struct TestBlockImpl : torch::nn::Module {
  explicit TestBlockImpl(int64_t channels)
      : conv(register_module(
            "conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, channels, 3).padding(1)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(channels))) {}
  at::Tensor forward(const at::Tensor& x) {
    ++calls;
    if (disturb) disturb(x);
    return x + at::dropout(at::relu(norm->forward(conv->forward(x))), 0.3, is_training());
  }
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  int calls = 0;
  std::function<void(const at::Tensor& x)> disturb;
};

struct TestTower : Network {
  explicit TestTower(const Config& /*params*/) {
    register_module("blocks", list);
    for (int i = 0; i < 3; ++i) {
      blocks.push_back(std::make_shared<TestBlockImpl>(4));
      list->push_back(blocks.back());
    }
    last = register_module("last", torch::nn::Conv2d(4, 2, 1));
  }
  at::Tensor forward(const at::Tensor& image) override {
    at::Tensor x = image;
    for (const auto& block : blocks) x = checkpointed(*block, x);
    if (between) between();
    return last->forward(x);
  }
  torch::nn::ModuleList list;
  std::vector<std::shared_ptr<TestBlockImpl>> blocks;
  torch::nn::Conv2d last{nullptr};
  std::function<void()> between;
};
STEPOP_REGISTER_MODEL(TestTower, {"For tests.", {}});

struct Built {
  explicit Built(const std::string& yaml) : config(test_config(yaml)) {
    seed_generators(5, c10::kCPU);
    networks.emplace(config, c10::kCPU, tracker);
    network = networks->get("model");
  }
  TestTower& tower() const { return dynamic_cast<TestTower&>(*network); }

  Config config;
  Tracker tracker;
  std::optional<Networks> networks;
  std::shared_ptr<torch::nn::Module> network;
};

/// What a step leaves: gradients, buffers, its output, and the next random number.
State step(const torch::nn::Module& network, const std::function<at::Tensor()>& forward) {
  seed_generators(7, c10::kCPU);
  const at::Tensor output = forward();
  seed_generators(8, c10::kCPU);  // as if other things were drawn between
  at::randn({3});
  output.square().sum().backward();
  State state = tensors_of(network);
  for (const auto& parameter : network.named_parameters()) {
    const at::Tensor gradient = parameter.value().grad();
    if (gradient.defined()) state["gradient of " + parameter.key()] = gradient;
  }
  state["output"] = output.detach();
  state["next random number"] = at::rand({1});
  return state;
}

const at::Tensor& image() {
  static const at::Tensor pixels =
      (at::arange(2 * 4 * 6 * 6, at::kFloat) * 0.37).sin().reshape({2, 4, 6, 6});
  return pixels;
}

State tower_step(const Built& built, const at::Tensor& input = image()) {
  return step(*built.network, [&] { return built.tower().forward(input); });
}

TEST_CASE("a second run in another thread, as that of a device, shares batches like the first") {
  const Built built("model: TestTower\ncheckpoint_modules: blocks\n");
  World world;
  const StepClock clock;
  SyncBatchNorm sync(world, clock);
  std::vector<SyncBatchNorm*> seen;
  built.tower().blocks[1]->disturb = [&](const at::Tensor&) {
    seen.push_back(SyncBatchNorm::of_thread());
  };
  at::Tensor loss;
  {
    const SyncBatchNorm::Scope scope(&sync);
    loss = built.tower().forward(image()).sum();
  }
  SyncBatchNorm* after = &sync;
  std::thread([&] {
    loss.backward();
    after = SyncBatchNorm::of_thread();
  }).join();
  CHECK(seen == std::vector<SyncBatchNorm*>{&sync, &sync});
  CHECK(after == nullptr);  // of the other thread
}

TEST_CASE("modules that are run again have the gradients of those that keep everything") {
  const Built plain("model: TestTower");
  const State expected = tower_step(plain);
  for (const std::string patterns :
       {"[\"blocks.*\"]", "model.blocks.1$", "[.]", "[blocks.0, blocks..]", "[blocks.2, 2$]"}) {
    CAPTURE(patterns);
    const Built built("model: TestTower\ncheckpoint_modules: " + patterns);
    for (const bool wants_gradient : {true, false}) {
      CAPTURE(wants_gradient);
      for (const auto& parameter : built.network->parameters())
        parameter.mutable_grad() = at::Tensor();
      const Built other("model: TestTower");
      const State state = tower_step(wants_gradient ? built : other);
      CHECK(differences(state, expected) == "");
    }
    int calls = 0;
    for (const auto& block : built.tower().blocks) calls += block->calls;
    const bool is_one =
        patterns.find("blocks.1") != std::string::npos || patterns.find("2$") != std::string::npos;
    CHECK(calls == (is_one ? 4 : 6));
    CHECK(built.networks->checkpoint_modules().warning() == "");
  }
}

TEST_CASE("inputs get the same gradients, also those of a second order") {
  const auto gradients = [](const std::string& yaml) {
    const Built built("model: TestTower" + yaml);
    seed_generators(7, c10::kCPU);
    const at::Tensor input = image().clone().requires_grad_();
    const at::Tensor score = built.tower().forward(input).pow(3).sum();
    const at::Tensor first = torch::autograd::grad({score}, {input}, {}, /*retain_graph=*/true,
                                                   /*create_graph=*/true)
                                 .at(0);
    (first.square().sum() + score).backward();
    State state = {{"first", first.detach()}, {"second", input.grad()}};
    for (const auto& parameter : built.network->named_parameters()) {
      state[parameter.key()] = parameter.value().grad();
    }
    return state;
  };
  CHECK(differences(gradients("\ncheckpoint_modules: [\"blocks.*\"]"), gradients("")) == "");
}

TEST_CASE("a graph that is kept can be passed twice") {
  const auto gradients = [](const std::string& yaml) {
    const Built built("model: TestTower" + yaml);
    seed_generators(7, c10::kCPU);
    const at::Tensor loss = built.tower().forward(image()).square().sum();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    return State{{"weight", built.tower().blocks[0]->conv->weight.grad()}};
  };
  CHECK(differences(gradients("\ncheckpoint_modules: [\"blocks.*\"]"), gradients("")) == "");
}

TEST_CASE("with bfloat16 the second run casts as the first did") {
  const auto trained = [](const std::string& yaml) {
    const Built built("model: TestTower" + yaml);
    return step(*built.network, [&] {
      const AutocastGuard autocast(Precision::kBfloat16, c10::kCPU);
      return built.tower().forward(image());
    });
  };
  CHECK(differences(trained("\ncheckpoint_modules: [\"blocks.*\"]"), trained("")) == "");
}

TEST_CASE("the blocks of every network that has such can be run again") {
  const auto noise = [](const std::vector<int64_t>& shape) {
    seed_generators(11, c10::kCPU);
    return at::randn(shape);
  };
  struct Model {
    std::string yaml;
    std::vector<at::Tensor> inputs;
    size_t least;  ///< Modules that run again.
  };
  const at::Tensor times = at::arange(2, at::kFloat) * 100 + 3;
  const std::vector<Model> models = {
      {"{class: RRDBNet, nf: 8, nb: 2, gc: 4}", {noise({2, 3, 6, 6})}, 2},
      {"{class: UnetGenerator, input_size: 32, features: 4, n_downs: 3, use_dropout_layers: 2}",
       {noise({2, 3, 32, 32})},
       9},
      {"{class: DiT, image_size: [4, 4], hidden_size: 8, depth: 2, num_heads: 2}",
       {noise({2, 3, 4, 4}), times},
       2},
      {"{class: UNetModel, image_size: 8, in_channels: 3, out_channels: 3, model_channels: 32, "
       "num_res_blocks: 1, attention_resolutions: [2], channel_mult: [1, 2], dropout: 0.2}",
       {noise({2, 3, 8, 8}), times},
       8},
      {"{class: VUNet, spatial_size: 32, nf_start: 4, nf_max: 8, dropout_prob: 0.2}",
       {noise({2, 3, 32, 32}), noise({2, 3, 32, 32})},
       20},
  };
  for (const auto& model : models) {
    CAPTURE(model.yaml);
    const auto trained = [&](const std::string& more) {
      const Built built("model: " + model.yaml + more);
      const State state = step(*built.network, [&] {
        if (auto* one = dynamic_cast<Network*>(built.network.get())) {
          return one->forward(model.inputs.at(0));
        }
        auto inputs = model.inputs;
        auto& several = dynamic_cast<MultiNetwork&>(*built.network);
        inputs.resize(std::max(inputs.size(), several.input_names().size()));
        return several.forward_all(inputs).at(0);
      });
      if (!more.empty()) CHECK(built.networks->checkpoint_modules().ran().size() >= model.least);
      return state;
    };
    CHECK(differences(trained("\ncheckpoint_modules: [.]"), trained("")) == "");
  }
}

TEST_CASE("a deep network takes less memory") {
  const auto most = [](const std::string& yaml) {
    const Built built("model: {class: RRDBNet, nf: 16, nb: 6, gc: 8}" + yaml);
    const at::Tensor input = at::rand({1, 3, 24, 24});
    const TensorMemory memory;
    dynamic_cast<Network&>(*built.network).forward(input).sum().backward();
    return static_cast<double>(memory.most(c10::kCPU));
  };
#ifdef __x86_64__
  constexpr double kPart = 0.5;
#else
  constexpr double kPart = 0.6;  // convolutions need more for themselves: on aarch64 it is 0.56
#endif
  CHECK(most("\ncheckpoint_modules: body") < kPart * most(""));
}

TEST_CASE("nothing stays in memory after a step") {
  for (const std::string model :
       {"TestTower", "{class: VUNet, spatial_size: 32, nf_start: 4, nf_max: 8}"}) {
    CAPTURE(model);
    const Built built("model: " + model + "\ncheckpoint_modules: .");
    const TensorMemory memory;
    int64_t after_first = 0;
    for (int i = 0; i < 3; ++i) {
      at::Tensor output;
      if (auto* one = dynamic_cast<Network*>(built.network.get())) {
        output = one->forward(image());
      } else {
        auto& several = dynamic_cast<MultiNetwork&>(*built.network);
        std::vector<at::Tensor> inputs = {at::rand({2, 3, 32, 32}), at::rand({2, 3, 32, 32})};
        inputs.resize(std::max(inputs.size(), several.input_names().size()));
        output = several.forward_all(inputs).at(0);
      }
      output.sum().backward();
      output = at::Tensor();
      if (i == 0) after_first = memory.now(c10::kCPU);
    }
    CHECK(memory.now(c10::kCPU) == after_first);
  }
}

TEST_CASE("what does not repeat is told, with the module") {
  const auto message = [](const std::function<void(Built & built, at::Tensor & input)>& prepare) {
    Built built("model: TestTower\ncheckpoint_modules: [blocks.1]");
    at::Tensor input = image().clone();
    prepare(built, input);
    return message_of([&] { built.tower().forward(input).sum().backward(); });
  };
  CHECK(
      message([](Built& built, at::Tensor&) {
        built.tower().blocks[1]->disturb = [](const at::Tensor& x) { x.detach().add_(1); };
      }).find("checkpoint_modules: model.blocks.1: an input was changed in place after the call") !=
      std::string::npos);
  CHECK(message([](Built& built, at::Tensor&) {
          built.tower().between = [&tower = built.tower()] {
            tower.blocks[1]->conv->weight.detach().add_(1);
          };
        }).find("checkpoint_modules: model.blocks.1: its weights have changed between the call") !=
        std::string::npos);
  const std::string other = message([](Built& built, at::Tensor&) {
    auto& block = *built.tower().blocks[1];
    block.disturb = [&block](const at::Tensor& x) {
      if (block.calls == 1) block.conv->weight.mul(x.sum()).exp();
    };
  });
  CAPTURE(other);
  CHECK(other.find("model.blocks.1: it saved ") != std::string::npos);
  CHECK(other.find(" when it ran again: what it does may depend on its inputs") !=
        std::string::npos);
  CHECK(message([](Built& built, at::Tensor&) {
          built.tower().blocks[1]->disturb = [&block =
                                                  *built.tower().blocks[1]](const at::Tensor&) {
            torch::autograd::grad({block.conv->weight.square().sum()}, {block.conv->weight});
          };
        }).find("model.blocks.1: its forward has a backward pass of its own") != std::string::npos);
  CHECK(message([](Built& built, at::Tensor&) {
          auto& block = *built.tower().blocks[1];
          block.disturb = [&block](const at::Tensor&) {
            if (block.calls == 2) throw Error("not twice");
          };
        }).find("not twice") != std::string::npos);
  // After an error the next step is as any other.
  Built built("model: TestTower\ncheckpoint_modules: [blocks.1]");
  built.tower().blocks[1]->disturb = [](const at::Tensor&) { throw Error("not once"); };
  CHECK(message_of([&] { built.tower().forward(image()); }).find("not once") != std::string::npos);
  built.tower().blocks[1]->disturb = nullptr;
  const Built plain("model: TestTower");
  const Built again("model: TestTower\ncheckpoint_modules: [blocks.1]");
  CHECK(differences(tower_step(again), tower_step(plain)) == "");
}

TEST_CASE("names that are none, and modules that nobody runs again") {
  CHECK(message_of([] { Built("model: TestTower\ncheckpoint_modules: [blocks, blokcs.1]"); }) ==
        "test.yaml:2: checkpoint_modules/1: \"blokcs.1\" matches no module; there are: "
        "model.blocks, model.blocks.0, model.blocks.0.conv, model.blocks.0.norm, model.blocks.1, "
        "model.blocks.1.conv, model.blocks.1.norm, model.blocks.2, model.blocks.2.conv, "
        "model.blocks.2.norm and 1 more");
  // With and without the name of the network.
  CHECK_NOTHROW(Built("model: TestTower\ncheckpoint_modules: [^model.blocks.1, ^blocks.2]"));
  const Built built("model: TestTower\ncheckpoint_modules: [blocks, last]");
  tower_step(built);
  CHECK(built.networks->checkpoint_modules().warning() ==
        "checkpoint_modules: no module that last names was run again so far: a network calls its "
        "blocks by checkpointed(*block, x), of runtime/train/networks/checkpoint_modules.h, or "
        "nothing "
        "is saved");
}

}  // namespace checkpoint_modules_test
}  // namespace stepop
