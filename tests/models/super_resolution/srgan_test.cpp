// The networks of SRGAN and ESRGAN against DL-Art-School's own, whose values
// tests/data/srgan/make.py stored: weights by the same names, images, gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/test_run.h"

namespace stepop {
namespace srgan_test {

using nlohmann::json;

const SafetensorsFile& stored() {
  static const SafetensorsFile file =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/srgan/values.safetensors");
  return file;
}

std::shared_ptr<Network> build(const std::string& config) {
  const Config parsed = test_config("model: " + config);
  const auto network = std::dynamic_pointer_cast<Network>(models().build(parsed, "model"));
  CHECK(parsed.unknown_keys() == "");
  return network;
}

/// What make.py has in the place of weights: of the k-th tensor.
at::Tensor weight(int64_t k, at::IntArrayRef shape, const std::string& name) {
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  const at::Tensor i = at::arange(count, at::kDouble);
  const at::Tensor wave =
      at::sin(i * 0.7 + static_cast<double>(k) * 1.3 + at::sin(i * 0.013) * 0.1);
  at::Tensor made;
  if (name.ends_with("running_var")) {
    made = wave * 0.3 + 1;
  } else if (shape.size() == 1) {
    made = wave * 0.1 + (name.ends_with("weight") ? 1 : 0);
  } else {
    made = wave * std::sqrt(2.0 * static_cast<double>(shape[0]) / static_cast<double>(count));
  }
  return made.to(at::kFloat).reshape(shape);
}

/// Fills a network; its tensors have to have exactly these names and shapes.
void fill(Network& network, const json& shapes) {
  State state;
  int64_t k = 0;
  for (const auto& [name, shape] : shapes.items()) {  // sorted
    state[name] = weight(k++, shape.get<std::vector<int64_t>>(), name);
  }
  State own = tensors_of(network);
  for (auto tensor = own.begin(); tensor != own.end();) {
    tensor = tensor->first.ends_with("num_batches_tracked") ? own.erase(tensor) : std::next(tensor);
  }
  load_tensors("network", own, state);
}

std::string difference(const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes()) {
    return fmt::format("found {}, expected {}", describe_tensor(found), describe_tensor(expected));
  }
  const double scale = expected.abs().max().item<double>();
  if (at::allclose(found, expected, /*rtol=*/1e-3, /*atol=*/1e-4 * scale + 1e-5)) return {};
  return fmt::format("they differ by {} of {}", (found - expected).abs().max().item<double>(),
                     scale);
}

TEST_CASE("networks of DL-Art-School: the same names, outputs and gradients, in both modes") {
  const json cases = json::parse(stored().metadata.at("cases"));
  CHECK(cases.size() == 10);
  for (const auto& each : cases) {
    const std::string name = each["name"];
    CAPTURE(name);
    const auto network = build(each["config"].dump());
    fill(*network, each["shapes"]);
    const auto expected = [&](const std::string& what) {
      return stored().tensors.at(name + "/" + what);
    };
    const int64_t size = each["size"];
    const at::Tensor i = at::arange(2 * 3 * size * size, at::kDouble);
    const at::Tensor image = at::sin(i * 0.37 + at::sin(i * 0.011))
                                 .to(at::kFloat)
                                 .reshape({2, 3, size, size})
                                 .requires_grad_();
    network->eval();
    CHECK(difference(network->forward(image), expected("evaluated")) == "");
    network->train();
    const at::Tensor made = network->forward(image);
    CHECK(difference(made, expected("made")) == "");
    const at::Tensor direction =
        at::cos(at::arange(made.numel(), at::kFloat)).reshape(made.sizes());
    (made * direction).sum().backward();
    CHECK(difference(image.grad()
                         .narrow(2, 0, std::min<int64_t>(size, 4))
                         .narrow(3, 0, std::min<int64_t>(size, 4)),
                     expected("gradient")) == "");
    for (const auto& parameter : network->named_parameters()) {
      CAPTURE(parameter.key());
      const at::Tensor some = expected("gradient_of/" + parameter.key());
      CHECK(difference(parameter.value().grad().flatten().narrow(0, 0, some.numel()), some) == "");
    }
  }
}

TEST_CASE("sizes that these networks cannot take are refused with the key") {
  const auto mistake = [](const std::string& config) { return message_of([&] { build(config); }); };
  CHECK(mistake("{class: discriminator_vgg_128, image_size: 100}") ==
        "test.yaml:1: model/image_size: expected a multiple of 32, found 100");
  CHECK(mistake("{class: discriminator_vgg_128_gn, nf: 4}") ==
        "test.yaml:1: model/nf: expected a multiple of 8, the groups, found 4");
  CHECK(mistake("{class: RRDBNet, scale: 3}") ==
        "test.yaml:1: model/scale: expected 1, 2, 4 or 8, found 3");
  CHECK(mistake("{class: RRDBNet, output_mode: features_only}")
            .find("model/output_mode: expected hq_only") != std::string::npos);
  const auto network = build("{class: discriminator_vgg_128, image_size: 32, nf: 2}");
  CHECK(message_of([&] {
          network->forward(at::arange(48, at::kFloat).reshape({1, 3, 4, 4}));
        }) ==
        "expected images [B, 3, 32, 32], by model/in_nc and model/image_size, found float32 [1, 3, "
        "4, 4]");
}

TEST_CASE("images of another number of channels are refused with what is expected") {
  const at::Tensor grey = at::arange(2048, at::kFloat).reshape({2, 1, 32, 32});
  const auto refused = [&](const std::string& config, const std::string& message) {
    CAPTURE(config);
    const auto network = build(config);
    CHECK(message_of([&] { network->forward(grey); }) ==
          message + ", found float32 [2, 1, 32, 32]");
  };
  for (const std::string name : {"discriminator_vgg_128", "discriminator_vgg_128_gn"}) {
    refused("{class: " + name + ", image_size: 32, nf: 8}",
            "expected images [B, 3, 32, 32], by model/in_nc and model/image_size");
  }
  refused("toy_g", "expected images [B, 3, H, W], by model");
  refused("toy_d", "expected images [B, 3, H, W], by model");
}

}  // namespace srgan_test
}  // namespace stepop
