// BYOL against DL-Art-School's own, whose values tests/data/byol/make.py stored.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <string>

#include "iterators/extensible/step/network_hooks.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "tests/message_of.h"
#include "tests/models/exported_nets.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace byol_test {

/// The network that make.py trains.
class ByolSubnet : public Network {
 public:
  explicit ByolSubnet(const Config&) {
    conv_ = register_module(
        "0", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).stride(2).padding(1)));
  }
  at::Tensor forward(const at::Tensor& x) override { return conv_->forward(x).relu(); }

 private:
  torch::nn::Conv2d conv_{nullptr};
};
STEPOP_REGISTER_MODEL(ByolSubnet, {"For a test.", {}});

State stored(const std::string& prefix) {
  static const State tensors =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/byol/values.safetensors").tensors;
  State found;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = tensor;
  }
  return found;
}

std::string network_text(const std::string& kind) {
  return fmt::format(
      "{{class: byol, image_size: 16, hidden_layer: -1, projection_size: 5, "
      "projection_hidden_size: 7, moving_average_decay: 0.9, use_structural_mlp: {}, "
      "subnet: {{class: ByolSubnet}}}}",
      kind == "structural/");
}

std::shared_ptr<MultiNetwork> network(const std::string& text) {
  return std::dynamic_pointer_cast<MultiNetwork>(
      models().build(test_config("model: " + text), "model"));
}

void check_equal(const State& made, const State& expected, const std::string& prefix = "") {
  REQUIRE_FALSE(expected.empty());
  for (const auto& [name, tensor] : expected) {
    CAPTURE(name);
    const at::Tensor& found = made.at(prefix + name);
    REQUIRE(found.sizes() == tensor.sizes());
    const double largest = std::max(1.0, tensor.abs().max().item<double>());
    CHECK((found - tensor).abs().max().item<double>() < 1e-5 * largest);
  }
}

TEST_CASE("losses and gradients of two views are DL-Art-School's, and the target has none") {
  for (const std::string kind : {"flat/", "structural/"}) {
    CAPTURE(kind);
    const auto net = network(network_text(kind));
    load_tensors("model", tensors_of(*net), stored(kind + "before/"));
    {
      const at::NoGradGuard no_grad;  // as around each hook
      dynamic_cast<extensible::NetworkHooks&>(*net).update_for_step(0);
    }
    const State values = stored(kind);
    const auto view = [&](const char* name) {
      return values.at(name).to(at::kFloat).div(127.5).sub(1);
    };
    const at::Tensor losses = net->forward_all({view("one"), view("two")}).at(0);
    CHECK(losses.sizes() == at::IntArrayRef{4});
    CHECK(losses.mean().item<double>() ==
          doctest::Approx(values.at("loss/0").item<double>()).epsilon(1e-5));
    losses.mean().backward();
    State gradients;
    for (const auto& item : net->named_parameters()) {
      if (item.value().grad().defined()) gradients[item.key()] = item.value().grad();
    }
    check_equal(gradients, stored(kind + "gradient/"));
    CHECK(gradients.size() == stored(kind + "gradient/").size());
  }
}

TEST_CASE("two iterations of an ExtensibleTrainer are DL-Art-School's, with the moving average") {
  for (const std::string kind : {"flat/", "structural/"}) {
    CAPTURE(kind);
    const ScratchFolder folder;
    const State values = stored(kind);
    for (int64_t i = 0; i < 4; ++i) {
      for (const char* name : {"one", "two"}) {
        folder.write(fmt::format("{}/{}.png", name, i),
                     encode_png(values.at(name)[i].permute({1, 2, 0}).contiguous()));
      }
    }
    TestRun run(fmt::format(R"(
iterator: ExtensibleTrainer
batch_size: 4
num_steps: 2
log_freq: 1
datasets:
  train:
    class: Zip
    datasets:
      one: {{class: ImageFolder, path: {0}/one, classes: [], channels: 3}}
      two: {{class: ImageFolder, path: {0}/two, classes: [], channels: 3}}
networks: {{generator: {1}}}
steps:
  generator:
    training: generator
    optimizer: sgd
    optimizer_params: {{lr: 0.5, momentum: 0, weight_decay: 0}}
    injectors: {{gen: {{type: generator, generator: generator, in: [one/image, two/image], out: loss}}}}
    losses: {{byol: {{type: direct, weight: 1, key: loss}}}}
)",
                            folder.path(), network_text(kind)));
    const auto& module = run.session.context().networks.get("generator");
    load_tensors("generator", tensors_of(*module), stored(kind + "before/"));
    run.train();
    for (size_t i = 0; i < 2; ++i) {
      const auto line = run.metrics().at(i);
      CHECK(line.at("train/train_op/loss_byol").get<double>() ==
            doctest::Approx(values.at(fmt::format("loss/{}", i)).item<double>()).epsilon(1e-5));
      CHECK(line.at("train/log_op/generator_target_ema_beta").get<double>() == 0.9);
    }
    check_equal(run.checkpoint(2), stored(kind + "after/"), "generator.");
  }
}

TEST_CASE("the target begins as the network that is trained") {
  const State made = tensors_of(*network(network_text("flat/")));
  int64_t count = 0;
  for (const auto& [name, tensor] : made) {
    if (!name.starts_with("target_encoder.")) continue;
    ++count;
    CHECK(at::equal(tensor, made.at("online" + name.substr(6))));
  }
  CHECK(count > 0);
}

TEST_CASE("a hidden layer of a network from Python gives the features") {
  const std::string subnet =
      "subnet: {class: Exported, path: " + exported_nets().path("hidden.pt2");
  const auto features_of = [&](const std::string& layer) {
    const auto made =
        network("{class: byol, image_size: 8, projection_hidden_size: 7, " + layer + subnet + "}}");
    made->forward_all({at::zeros({2, 3, 8, 8}), at::zeros({2, 3, 8, 8})});
    return tensors_of(*made).at("online_encoder.projector.net.0.weight").size(1);
  };
  CHECK(features_of("") == 3 * 8 * 8);
  CHECK(features_of("hidden_layer: middle, ") == 8 * 4 * 4);
  CHECK(message_of([&] { features_of("hidden_layer: avgpool, "); })
            .find("model/hidden_layer: " + exported_nets().path("hidden.pt2") +
                  " calls no layer \"avgpool\"; there are: first") != std::string::npos);
}

TEST_CASE("what the network of BYOL cannot be is said with its place") {
  const auto message = [](const std::string& text) {
    return message_of([&] { network("{class: byol, " + text + "}"); });
  };
  CHECK(message("image_size: 8, hidden_layer: avgpool, subnet: {class: ByolSubnet}") ==
        "test.yaml:1: model/hidden_layer: layers have names in networks from Python, {class: "
        "Exported}: expected -1, what the network returns, found \"avgpool\"");
  CHECK(message("image_size: 8, hidden_layer: 3, subnet: {class: ByolSubnet}") ==
        "test.yaml:1: model/hidden_layer: expected the name of a layer, avgpool, or -1, what the "
        "network returns, found 3");
  CHECK(
      message("image_size: 8, channels: 1, subnet: {class: ByolSubnet}")
          .starts_with("test.yaml:1: model/subnet: it fails with pictures [2, 1, 8, 8] (channels, "
                       "image_size): "));
  CHECK(
      message(
          "image_size: 8, use_structural_mlp: true, subnet: {class: MLP, inputs: 192, outputs: 4}")
          .starts_with(
              "test.yaml:1: model/subnet: expected a network that makes features [B, C, H, W] of a "
              "picture, found float32 [2, "));
  CHECK(message("image_size: 8, subnet: {class: ByolSubnet}, moving_average_decay: 2") ==
        "test.yaml:1: model/moving_average_decay: expected a number from 0 to 1, found 2");
}

}  // namespace byol_test
}  // namespace stepop
