#include "iterators/losses/perceptual.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "runtime/core/formats/safetensors.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/test_run.h"

namespace stepop::losses {
namespace perceptual_test {

const std::string kThin = STEPOP_SOURCE_DIR "/tests/data/vgg19/thin.safetensors";

State stored() { return load_safetensors(kThin).tensors; }

PerceptualLoss build(const std::string& params) {
  return {test_config("perceptual: " + params).at("perceptual"), c10::kCPU};
}

TEST_CASE("VGG19's layers, the loss and its gradient through all layers are those of PyTorch") {
  const State expected = stored();
  const at::Tensor image = expected.at("image").clone().set_requires_grad(true);
  const auto found = Vgg19(kThin, c10::kCPU).forward(expected.at("target"));
  REQUIRE(found.size() == Vgg19::kLayers + 1);
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(at::allclose(found[i], expected.at("layer." + std::to_string(i)), 1e-5, 1e-5));
  }
  const PerceptualLoss loss =
      build("{vgg19: " + kThin + ", vgg_feat_weights: [0.5, 1, 2, 0.25, 4, 8]}");
  const at::Tensor values = loss(image, expected.at("target"));
  CHECK((values.sizes() == at::IntArrayRef{2}));
  CHECK(at::allclose(values, expected.at("loss"), 1e-5, 1e-5));
  (values[0] - 2 * values[1]).backward();
  CHECK(at::allclose(image.grad(), expected.at("gradient"), 1e-4, 1e-6));
}

TEST_CASE("weights of layers are 1 by default, and layers that have none are not computed") {
  const State tensors = stored();
  const at::Tensor image = tensors.at("image");
  const at::Tensor target = tensors.at("target");
  CHECK(build("{vgg19: " + kThin + "}")(image, target)
            .equal(build("{vgg19: " + kThin + ", vgg_feat_weights: [1, 1, 1, 1, 1, 1]}")(image,
                                                                                         target)));
  const PerceptualLoss one = build("{vgg19: " + kThin + ", vgg_feat_weights: [0, 3, 0, 0, 0, 0]}");
  CHECK((one(at::ones({1, 3, 1, 1}), at::ones({1, 3, 1, 1})).item<float>() == 0));
  CHECK(one(at::ones({1, 3, 4, 4}), at::zeros({1, 3, 4, 4})).item<float>() > 0);
}

TEST_CASE("Gram matrices compare which channels occur together, wherever") {
  const State tensors = stored();
  const at::Tensor image = tensors.at("image");
  const at::Tensor target = tensors.at("target");
  const PerceptualLoss style = build("{vgg19: " + kThin +
                                     ", vgg_feat_weights: [0, 0, 0, 0, 0, 0], gram_weights: [0, 2, "
                                     "0, 0.5, 0]}");
  const Vgg19 vgg(kThin, c10::kCPU);
  at::Tensor expected = at::zeros({2}, at::kDouble);
  for (const auto& [layer, weight] : {std::pair{2, 2.0}, std::pair{4, 0.5}}) {
    const auto matrix = [&](const at::Tensor& of) {
      const at::Tensor f = vgg.forward(of)[static_cast<size_t>(layer)].to(at::kDouble);
      return at::einsum("bcij,bdij->bcd", {f, f}) / (4 * f.size(2) * f.size(3));
    };
    expected += (matrix(image) - matrix(target)).abs().mean(at::IntArrayRef{1, 2}) * weight;
  }
  CHECK(at::allclose(style(image, target), expected.to(at::kFloat), 1e-5, 1e-7));
  CHECK(style(image, image).abs().max().item<float>() == 0);
  CHECK(message_of([] { build("{vgg19: " + kThin + ", gram_weights: [1]}"); }) ==
        "test.yaml:1: perceptual/gram_weights: expected 5 numbers, for layers of VGG19, found 1");
}

TEST_CASE("the loss of three layers takes images as they are, or as VGG19 was trained") {
  const State tensors = stored();
  const auto loss = [&](const std::string& more, const at::Tensor& a, const at::Tensor& b) {
    const Config config = test_config("vgg: {vgg19: " + kThin + more + "}");
    return VggLoss(config.at("vgg"), c10::kCPU)(a, b);
  };
  const at::Tensor image = tensors.at("image");
  const at::Tensor target = tensors.at("target");
  const Vgg19 vgg(kThin, c10::kCPU);
  CHECK(loss(", normalize: true", image, target)
            .equal(loss("", vgg.normalized(image), vgg.normalized(target))));
  CHECK_FALSE(loss("", image, target).equal(loss(", normalize: true", image, target)));
  CHECK(loss("", image, image).abs().max().item<float>() == 0);
  CHECK(message_of([&] { vgg.features(image, {3}); }) ==
        "VGG19 has no convolution at features.3 up to features.30");
}

TEST_CASE("without the weights of VGG19 the loss is refused with the line that makes them") {
  const std::string line = Vgg19::export_line();
  CHECK(message_of([] { build("{weight: 1}"); }) ==
        "test.yaml:1: perceptual/vgg19: the perceptual loss needs the weights of VGG19: name their "
        "file here; this makes it: " +
            line);
  CHECK(message_of([] { build("{vgg19: /none/vgg19.safetensors}"); }) ==
        "test.yaml:1: perceptual/vgg19: there is no file /none/vgg19.safetensors; this makes it: " +
            line);
  CHECK(read_bytes(STEPOP_SOURCE_DIR "/iterators/losses/README.md").find(line) !=
        std::string::npos);
}

TEST_CASE("a file that holds no VGG19 is refused") {
  const ScratchFolder folder;
  const std::string path = folder / "weights.safetensors";
  const auto refused = [&](const char* name, const at::Tensor& tensor) {
    State tensors = stored();
    tensors.erase(name);
    if (tensor.defined()) tensors.emplace(name, tensor);
    save_safetensors(path, tensors);
    return message_of([&] { build("{vgg19: " + path + "}"); });
  };
  const std::string place = "test.yaml:1: perceptual/vgg19: " + path;
  CHECK(refused("features.16.bias", {}) ==
        place + " has no features.16.bias, so it is not torchvision's VGG19; this makes one: " +
            Vgg19::export_line());
  CHECK(refused("features.2.weight", at::ones({4, 5, 3, 3})) ==
        place +
            ": expected features.2 to be a 3x3 convolution of 3 channels, found the weight "
            "float32 [4, 5, 3, 3] and the bias float32 [4]");
  CHECK(message_of([] { build("{vgg19: " + kThin + ", vgg_feat_weights: [1, 1]}"); }) ==
        "test.yaml:1: perceptual/vgg_feat_weights: expected 6 numbers, for the images and 5 layers "
        "of VGG19, found 2");
  CHECK(message_of([] {
          const at::Tensor small = at::ones({1, 3, 8, 16});
          build("{vgg19: " + kThin + "}")(small, small);
        }) ==
        "VGG19: expected images [B, 3, H, W] of 16 pixels a side or more, found float32 [1, 3, 8, "
        "16]");
}

}  // namespace perceptual_test
}  // namespace stepop::losses
