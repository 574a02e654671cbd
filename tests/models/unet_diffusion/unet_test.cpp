// The UNet of guided-diffusion, against the original in Python (tests/data/diffusion).
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "models/unet_diffusion/blocks.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/init_from.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/test_run.h"

namespace stepop {
namespace unet_diffusion_test {

bool close(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a, b, /*rtol=*/1e-4, /*atol=*/1e-4);
}

std::shared_ptr<MultiNetwork> build(const std::string& network) {
  const Config config = test_config("model: " + network);
  return std::dynamic_pointer_cast<MultiNetwork>(models().build(config, "model"));
}

TEST_CASE("weights of the UNet in Python load by name and give its outputs and gradients") {
  for (const std::string name : {"classes", "larger", "sequence", "averages"}) {
    CAPTURE(name);
    const std::string path =
        STEPOP_SOURCE_DIR "/tests/data/diffusion/unet-" + name + ".safetensors";
    const SafetensorsFile file = load_safetensors(path);
    const Config config = test_config(fmt::format(
        "networks: {{generator: {{which_model: {}, args: {}}}}}\n"
        "init_from: {{path: {}, prefix: weights.}}\n",
        name == "larger" ? "unet_diffusion" : "UNetModel", file.metadata.at("args"), path));
    Tracker tracker;
    Networks networks(config, c10::kCPU, tracker);
    InitFrom(config, networks).apply();  // throws for one that is missing or left over
    const auto network = std::dynamic_pointer_cast<MultiNetwork>(networks.get("generator"));
    std::vector<at::Tensor> inputs;
    for (const auto& input : network->input_names()) {
      const auto found = file.tensors.find("inputs." + input);
      inputs.push_back(found == file.tensors.end() ? at::Tensor() : found->second);
    }
    const at::Tensor output = network->forward_all(inputs).front();
    CHECK(close(output, file.tensors.at("output")));
    (output * file.tensors.at("direction")).sum().backward();
    int compared = 0;
    for (const auto& parameter : network->named_parameters()) {
      CAPTURE(parameter.key());
      const auto expected = file.tensors.find("gradients." + parameter.key());
      if (expected == file.tensors.end()) continue;
      CHECK(close(parameter.value().grad(), expected->second));
      ++compared;
    }
    if (name == "larger") {
      CHECK(compared == static_cast<int>(network->named_parameters().size()));
    }
    CHECK(config.unknown_keys() == "");
  }
}

TEST_CASE("timesteps become the sines and cosines of guided-diffusion") {
  const State stored =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/diffusion/diffusion.safetensors").tensors;
  const at::Tensor timesteps = at::tensor({0, 3, 999}, at::kLong);
  for (const int64_t size : {8, 9}) {
    CHECK(close(unet_diffusion::timestep_embedding(timesteps, size),
                stored.at(fmt::format("embedding/{}", size))));
  }
}

const std::string kSmall =
    "in_channels: 1, model_channels: 8, out_channels: 1, num_res_blocks: 1, "
    "attention_resolutions: [2], channel_mult: [1, 2]";

TEST_CASE("a UNet that begins gives zeros, and its options stand beside its name as well") {
  const auto network = build("{class: UNetModel, " + kSmall + "}");
  const at::Tensor x = at::zeros({2, 1, 8, 8}) + 1;
  const at::Tensor out = network->forward_all({x, at::tensor({1, 2}, at::kLong)}).front();
  CHECK(out.sizes() == x.sizes());
  CHECK(out.abs().max().item<double>() == 0);
}

TEST_CASE("a UNet that cannot be names the option") {
  const auto message = [](const std::string& network, const std::string& more) {
    return message_of([&] { build("{class: " + network + ", " + kSmall + more + "}"); });
  };
  CHECK(message("UNetModel", ", use_fp16: true").find("model/use_fp16: precision: bfloat16") !=
        std::string::npos);
  CHECK(message("UNetModel", ", dims: 3").find("dims: expected a number from 1 to 2, found 3") !=
        std::string::npos);
  CHECK(message("UNetModel", ", num_heads: 3")
            .find("model: attention over 16 channels cannot have 3 heads") != std::string::npos);
  CHECK(message("unet_diffusion", ", dims: 1").find("expected 2: it makes images larger") !=
        std::string::npos);
  const auto rates = message_of([&] {
    build(
        "{class: UNetModel, in_channels: 1, model_channels: 8, out_channels: 1, num_res_blocks: "
        "1, attention_resolutions: [8], channel_mult: [1, 2]}");
  });
  CHECK(rates.find("no level is 8 times smaller than the input; there are: 1, 2") !=
        std::string::npos);
  CHECK(message_of([&] {
          build(
              "{class: UNetModel, in_channels: 1, model_channels: 10, out_channels: 1, "
              "num_res_blocks: 1, attention_resolutions: []}");
        }).find("model/model_channels: expected a multiple of 4, best of 32") != std::string::npos);
}

TEST_CASE("inputs that a UNet cannot use are refused") {
  const at::Tensor t = at::tensor({1, 2}, at::kLong);
  const auto message = [&](const std::string& more, const std::vector<at::Tensor>& inputs) {
    const auto network = build("{class: " + more + ", " + kSmall + "}");
    return message_of([&] { network->forward_all(inputs); });
  };
  const at::Tensor x = at::zeros({2, 1, 8, 8});
  CHECK(message("UNetModel", {at::zeros({2, 1, 9, 8}), t}) ==
        "the UNet has 2 levels: sizes have to be multiples of 2, found float32 [2, 1, 9, 8]");
  CHECK(message("UNetModel", {at::zeros({2, 3, 8, 8}), t}) ==
        "the UNet: expected x [B, 1, H, W], by model/in_channels, found float32 [2, 3, 8, 8]");
  CHECK(message("UNetModel, dims: 1", {x, t}) ==
        "the UNet: expected x [B, 1, T], by model/in_channels, found float32 [2, 1, 8, 8]");
  CHECK(message("UNetModel, num_classes: 3", {x, t}) ==
        "the UNet has num_classes: its input y is the classes, int64 [B], found none");
  CHECK(message("UNetModel", {x, t, t}) ==
        "the UNet has no num_classes: it cannot use the input y");
  CHECK(message("unet_diffusion", {x, t}).starts_with("unet_diffusion needs the input low_res"));
}

}  // namespace unet_diffusion_test
}  // namespace stepop
