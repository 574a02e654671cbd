// SRFlow against DL-Art-School's own, whose values tests/data/srflow/make.py stored: weights by the
// same names, latents, losses, images, gradients.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/slogdet.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "models/super_resolution/srflow.h"
#include "runtime/core/base/error.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/test_run.h"

namespace stepop {
namespace srflow_test {

using nlohmann::json;

const SafetensorsFile& stored() {
  static const SafetensorsFile file =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/srflow/values.safetensors");
  return file;
}

template <class Class>
std::shared_ptr<Class> build(const std::string& config) {
  const Config parsed = test_config("model: " + config);
  const auto network = std::dynamic_pointer_cast<Class>(models().build(parsed, "model"));
  CHECK(parsed.unknown_keys() == "");
  return network;
}

/// What make.py has in the place of weights: of the k-th tensor.
at::Tensor weight(int64_t k, const std::vector<int64_t>& shape, const std::string& name) {
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  const at::Tensor i = at::arange(count, at::kDouble);
  at::Tensor wave = at::sin(i * 0.7 + static_cast<double>(k) * 1.3 + at::sin(i * 0.013) * 0.1);
  const auto first = static_cast<double>(shape[0]);
  if (name.ends_with("invconv.weight")) {
    wave = wave.reshape(shape) * 0.3 / std::sqrt(first) + at::eye(shape[0], at::kDouble);
  } else if (name.ends_with("gn.weight")) {
    wave = wave * 0.1 + 1;
  } else if (name.ends_with("bias") || name.ends_with("logs")) {
    wave = wave * 0.1;
  } else {
    wave = wave * std::sqrt(first / static_cast<double>(count));
  }
  return wave.to(at::kFloat).reshape(shape);
}

/// Fills a network; its tensors have to have exactly these names and shapes.
void fill(torch::nn::Module& network, const json& shapes) {
  State state;
  int64_t k = 0;
  for (const auto& [name, shape] : shapes.items()) {  // sorted
    state[name] = weight(k++, shape.get<std::vector<int64_t>>(), name);
  }
  load_tensors("network", tensors_of(network), state);
}

at::Tensor picture(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  const at::Tensor i = at::arange(count, at::kDouble);
  return (at::sin(i * 0.37 + at::sin(i * 0.011)) * 0.5 + 0.5).to(at::kFloat).reshape(shape);
}

at::Tensor direction(const at::Tensor& x) {
  return at::cos(at::arange(x.numel(), at::kFloat)).reshape(x.sizes());
}

/// The largest difference, as a part of the largest number.
double difference(const at::Tensor& found, const std::string& name) {
  const at::Tensor& expected = stored().tensors.at(name);
  CAPTURE(name);
  REQUIRE(found.sizes() == expected.sizes());
  const double scale = expected.abs().max().item<double>();
  return (found - expected).abs().max().item<double>() / (scale == 0 ? 1 : scale);
}

/// As of make.py, [parameters, 2]: norms, and first numbers.
at::Tensor gradients(const torch::nn::Module& network) {
  std::map<std::string, at::Tensor> sorted;
  for (const auto& each : network.named_parameters()) sorted[each.key()] = each.value();
  std::vector<at::Tensor> rows;
  for (const auto& [name, value] : sorted) {
    const at::Tensor grad = value.grad();
    rows.push_back(grad.defined()
                       ? at::stack({grad.to(at::kDouble).norm().to(at::kFloat), grad.flatten()[0]})
                       : at::zeros({2}));
  }
  return at::stack(rows);
}

/// The largest difference of a parameter's gradients, as a part of their norm. Gradients that are
/// sums of much larger numbers, such as that of a bias before a normalization, are 0.
double difference_of_gradients(const torch::nn::Module& network, const std::string& name) {
  const at::Tensor expected = stored().tensors.at(name);
  const at::Tensor found = gradients(network);
  REQUIRE(found.sizes() == expected.sizes());
  const at::Tensor norms = expected.slice(1, 0, 1);
  const double largest = norms.max().item<double>();
  CHECK(largest > 0);
  return ((found - expected).abs() / norms.clamp_min(1e-2 * largest)).max().item<double>();
}

std::vector<json> cases_of(const std::string& kind) {
  std::vector<json> found;
  for (const auto& each : json::parse(stored().metadata.at("cases"))) {
    if ((each["class"] == "srflow") == (kind == "srflow")) found.push_back(each);
  }
  return found;
}

std::string config_of(const json& each) {
  json config = each["config"];
  config["class"] = each["class"];
  return config.dump();
}

// LibTorch for aarch64 adds in another order than that for x86-64, by which the values were made,
// and is 7e-5 away after so many layers.
#ifdef __x86_64__
constexpr double kNear = 1e-5;
#else
constexpr double kNear = 1e-4;
#endif

TEST_CASE("SRFlow: latents, losses, images and gradients are those of DL-Art-School") {
  const auto cases = cases_of("srflow");
  CHECK(cases.size() == 3);
  for (const auto& each : cases) {
    const std::string name = each["name"];
    const int64_t size = each["size"];
    const int64_t large = size * each["scale"].get<int64_t>();
    CAPTURE(name);
    const auto network = build<srflow::SrFlow>(config_of(each));
    fill(*network, each["shapes"]);
    const at::Tensor image = picture({2, 3, large, large}).requires_grad_();
    const at::Tensor small = picture({2, 3, size, size});

    torch::manual_seed(5);
    const srflow::Encoded made = network->encode(image, small, /*adds_noise=*/true);
    made.nll.mean().backward();
    CHECK(difference(made.nll, name + "/nll") < kNear);
    CHECK(difference(made.logdet, name + "/logdet") < kNear);
    CHECK(made.latents.size() == each["latents"].get<size_t>());
    std::vector<at::Tensor> given;
    for (size_t i = 0; i < made.latents.size(); ++i) {
      const std::string latent = fmt::format("{}/latent{}", name, i);
      CHECK(difference(made.latents[i], latent) < kNear);
      given.push_back(stored().tensors.at(latent).clone().requires_grad_());
    }
    CHECK(difference_of_gradients(*network, name + "/gradients") < kNear);
    CHECK(difference(image.grad(), name + "/gradient") < kNear);

    network->zero_grad();
    const srflow::Decoded back = network->decode(small, {.latents = given, .with_gradient = true});
    (back.image * direction(back.image)).sum().backward();
    CHECK(difference(back.image, name + "/image") < kNear);
    CHECK(difference(back.logdet, name + "/reverse_logdet") < kNear);
    CHECK(difference(back.rrdb, name + "/rrdb") < kNear);
    CHECK(difference_of_gradients(*network, name + "/reverse_gradients") < kNear);
    CHECK(difference(given.back().grad(), name + "/reverse_gradient") < kNear);
    if (given.size() == 1) continue;
    torch::manual_seed(6);
    const at::Tensor drawn = network->decode(small, {.heat = 0.4}).image;
    CHECK(difference(drawn, name + "/drawn") < kNear);
  }
}

TEST_CASE("RRDB by itself is that of DL-Art-School") {
  const auto cases = cases_of("rrdb");
  CHECK(cases.size() == 4);
  for (const auto& each : cases) {
    const std::string name = each["name"];
    const int64_t size = each["size"];
    CAPTURE(name);
    const auto network = build<Network>(config_of(each));
    fill(*network, each["shapes"]);
    const at::Tensor image = picture({2, 3, size, size}).requires_grad_();
    at::Tensor made = network->forward(image);
    (made * direction(made)).sum().backward();
    if (made.numel() >= 3000) made = made.slice(2, 50, 60).slice(3, 50, 60);
    CHECK(difference(made, name + "/made") < kNear);
    CHECK(difference(image.grad(), name + "/gradient") < kNear);
    CHECK(difference_of_gradients(*network, name + "/gradients") < kNear);
  }
}

/// A small flow whose second and third level are seen through one block.
const char* const kSmall =
    "{class: srflow, nf: 4, nb: 2, gc: 2, flow: {L: 3, K: 1, split: {enable: true}, stackRRDB: "
    "{blocks: [1], concat: true}, CondAffineSeparatedAndCond: {hidden_channels: 4}}}";

TEST_CASE("a config calls SRFlow in both directions, with all latents as one tensor or with one") {
  const auto network = build<srflow::SrFlow>(kSmall);
  for (auto& parameter : network->parameters()) {  // what begins at 0 would hide mistakes
    parameter.requires_grad_(false).add_(at::randn(parameter.sizes()), 0.02);
  }
  const at::Tensor image = picture({2, 3, 16, 16});
  const at::Tensor small = picture({2, 3, 4, 4});
  const at::Tensor yes = at::scalar_tensor(1);
  const at::Tensor none;
  const auto made = network->forward_all({image, small, none, none, none, none, none, none,
                                          /*add_gt_noise=*/at::scalar_tensor(0)});
  REQUIRE(made.size() == 3);
  CHECK(made[0].sizes() == at::IntArrayRef({2, 3 * 16 * 16}));
  CHECK(made[1].sizes() == at::IntArrayRef({2}));
  CHECK(made[2].sizes() == at::IntArrayRef({2}));
  const auto back = network->forward_all({none, small, made[0], none, yes});
  REQUIRE(back.size() == 3);
  CHECK((back[0] - image).abs().max().item<double>() < 1e-4);
  CHECK(back[2].sizes() == at::IntArrayRef({2, 3, 16, 16}));
  // The last latent alone: the others are drawn, so that pictures differ.
  const at::Tensor last = made[0].narrow(1, 6 * 64, 96 * 4).reshape({2, 96, 2, 2});
  const at::Tensor heat = at::scalar_tensor(0.3);
  const at::Tensor one = network->forward_all({none, small, last, heat, yes})[0];
  const at::Tensor other = network->forward_all({none, small, last, heat, yes})[0];
  CHECK((one - other).abs().max().item<double>() > 1e-3);
  const at::Tensor drawn = network->forward_all({none, small, none, heat, yes})[0];
  CHECK(drawn.sizes() == image.sizes());
}

TEST_CASE(
    "the logarithm of the determinant is that of the Jacobian, and the rest is a probability") {
  const auto network = build<srflow::SrFlow>(
      "{class: srflow, nf: 4, nb: 1, gc: 2, flow: {L: 2, K: 1, additionalFlowNoAffine: 1, "
      "CondAffineSeparatedAndCond: {hidden_channels: 4}}}");
  network->to(at::kDouble);
  for (auto& parameter : network->parameters()) {
    parameter.requires_grad_(false).add_(at::randn(parameter.sizes(), at::kDouble), 0.05);
  }
  const at::Tensor image = picture({1, 3, 4, 4}).to(at::kDouble).requires_grad_();
  const at::Tensor small = picture({1, 3, 1, 1}).to(at::kDouble);
  const auto made = network->encode(image, small, /*adds_noise=*/false);
  REQUIRE(made.latents.size() == 1);
  const at::Tensor flat = made.latents[0].flatten();
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    rows.push_back(
        torch::autograd::grad({flat[i]}, {image}, {}, /*retain_graph=*/true)[0].flatten());
  }
  const double expected = std::get<1>(at::slogdet(at::stack(rows))).item<double>();
  CHECK(made.logdet.item<double>() == doctest::Approx(expected).epsilon(1e-9));
  const double log_normal =
      -0.5 * (flat.square().sum().item<double>() + 48 * std::log(2 * std::numbers::pi));
  CHECK(made.nll.item<double>() ==
        doctest::Approx(-(expected + log_normal) / (16 * std::numbers::ln2)).epsilon(1e-9));
}

TEST_CASE("RRDB learns with train_RRDB alone") {
  for (const bool trains : {false, true}) {
    const auto network = build<srflow::SrFlow>(
        fmt::format("{{train_RRDB: {}, {}", trains, std::string(kSmall).substr(1)));
    network->encode(picture({1, 3, 16, 16}), picture({1, 3, 4, 4}), true).nll.sum().backward();
    for (const auto& parameter : network->named_parameters()) {
      if (parameter.key() == "RRDB.conv_first.weight") {
        CHECK(parameter.value().grad().defined() == trains);
      }
    }
  }
}

TEST_CASE("what SRFlow cannot be, or take, is refused with the key") {
  const auto mistake = [](const std::string& config) {
    return message_of([&] { build<torch::nn::Module>("{class: srflow, " + config + "}"); });
  };
  CHECK(mistake("scale: 6, flow: {}") == "test.yaml:1: model/scale: expected 4, 8 or 16, found 6");
  CHECK(
      mistake("scale: 4, flow_scale: 8, flow: {}") ==
      "test.yaml:1: model/scale: expected flow_scale, 8, or more, found 4: the flow needs features "
      "of each of its sizes");
  CHECK(
      mistake("nb: 2, flow: {stackRRDB: {blocks: [2]}}") ==
      "test.yaml:1: model/flow/stackRRDB/blocks: expected blocks from 0 to 1, as nb is 2, found 2");
  CHECK(mistake("flow: {K: [1, 2]}") ==
        "test.yaml:1: model/flow/K: expected a number, or a list of 4, one more than L, found 2");
  CHECK(mistake("pretrain_rrdb: a.pth, flow: {}") ==
        "test.yaml:1: model/pretrain_rrdb: a key of DL-Art-School; here: init_from: {path: FILE, "
        "network: NAME, map: {conv_: RRDB.conv_, body.: RRDB.body.}, strict: false}, at the top of "
        "the config");
  CHECK(mistake("nf: 4, rrdb_bypass: true, flow: {}") ==
        "test.yaml:1: model/nf: expected a multiple of 8, the groups of rrdb_bypass, found 4");
  CHECK(message_of([] {
          build<Network>("{class: rrdb_latent_wrapper, nb: 2, blocks_for_latent: [5]}");
        }) ==
        "test.yaml:1: model/blocks_for_latent: expected blocks from 0 to 1, as nb is 2, found 5");
  CHECK(message_of([] { build<Network>("{class: rrdb_srflow, scale: 2}"); }) ==
        "test.yaml:1: model/scale: expected 4, 8, 16 or 32, found 2");

  const auto network = build<srflow::SrFlow>(kSmall);
  const auto call = [&](const std::vector<at::Tensor>& inputs) {
    return message_of([&] { network->forward_all(inputs); });
  };
  const at::Tensor small = picture({2, 3, 4, 4});
  const at::Tensor yes = at::scalar_tensor(1);
  CHECK(
      call({picture({2, 3, 8, 8}), small}) ==
      "srflow: expected an image [2, 3, 16, 16] beside float32 [2, 3, 4, 4], found float32 [2, 3, "
      "8, 8]");
  CHECK(call({picture({2, 3, 12, 12}), picture({2, 3, 3, 3})}) ==
        "srflow has 3 levels: the sides of an image have to be multiples of 8, found 12 x 12, 4 "
        "times those of float32 [2, 3, 3, 3]");
  CHECK(call({{}, small}) ==
        "srflow needs its first input, the image; with true as its fifth, it makes one");
  CHECK(call({{}, small, {}, {}, yes}) ==
        "srflow needs z, or the standard deviation of the latents that are drawn: in: [None, lq, "
        "None, 0.8, true]");
  CHECK(call({{}, small, at::zeros({2, 7}), {}, yes}) ==
        "srflow: expected all latents, [2, 768], or the last one, [2, 96, 2, 2], found float32 [2, "
        "7]");
}

}  // namespace srflow_test
}  // namespace stepop
