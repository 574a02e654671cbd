#include "iterators/losses/perceptual.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "iterators/losses/image_losses.h"
#include "runtime/core/base/error.h"
#include "runtime/core/formats/weights_file.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::losses {
namespace {

/// The indices of the convolutions in torchvision's `features`, up to the last that is used. A ReLU
/// follows each convolution.
constexpr std::array<int64_t, 13> kConvolutions = {0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28};
constexpr int64_t kLastConvolution = 30;
/// The convolutions that follow a 2x2 max pooling.
constexpr std::array<int64_t, 4> kAfterPooling = {5, 10, 19, 28};
/// The convolutions of the five layers: conv1_2, conv2_2, conv3_2, conv4_2, conv5_2, each after its
/// ReLU.
constexpr std::array<int64_t, Vgg19::kLayers> kWanted = {2, 7, 12, 21, kLastConvolution};

template <size_t N>
bool contains(const std::array<int64_t, N>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

constexpr const char* kFile = "vgg19";
constexpr const char* kWeights = "vgg_feat_weights";
constexpr const char* kGramWeights = "gram_weights";

/// The Gram matrices of a layer [B, C, H, W]: [B, C, C].
at::Tensor gram(const at::Tensor& layer) {
  const at::Tensor flat = layer.flatten(2);
  return at::bmm(flat, flat.transpose(1, 2)) / (4.0 * static_cast<double>(flat.size(2)));
}

void check_images(const at::Tensor& images, int64_t least_side) {
  if (images.dim() == 4 && images.size(1) == 3 && images.size(2) >= least_side &&
      images.size(3) >= least_side) {
    return;
  }
  throw Error(
      fmt::format("VGG19: expected images [B, 3, H, W] of {} pixels a side or more, found {}",
                  least_side, describe_tensor(images)));
}

/// Loads the network from the file in a loss's part of the config.
Vgg19 load_vgg19(const Config& config, const c10::Device& device) {
  if (!config.has(kFile)) {
    throw config.error(kFile, fmt::format("the perceptual loss needs the weights of VGG19: name "
                                          "their file here; this makes it: {}",
                                          Vgg19::export_line()));
  }
  const std::string path = config.get_path(kFile);
  if (!std::filesystem::exists(path)) {
    throw config.error(
        kFile, fmt::format("there is no file {}; this makes it: {}", path, Vgg19::export_line()));
  }
  try {
    return {path, device};
  } catch (const Error& error) {
    throw config.error(kFile, error.what());
  }
}

}  // namespace

const char* Vgg19::export_line() {
  return "python -c \"import torchvision.models as m, safetensors.torch as s; "
         "s.save_file(m.vgg19(weights='IMAGENET1K_V1').features.state_dict(prefix='features.'), "
         "'vgg19.safetensors')\"";
}

Vgg19::Vgg19(const std::string& path, const c10::Device& device)
    : mean_(at::tensor({0.485f, 0.456f, 0.406f}).view({1, 3, 1, 1}).to(device)),
      deviation_(at::tensor({0.229f, 0.224f, 0.225f}).view({1, 3, 1, 1}).to(device)) {
  const State tensors = load_weights(path).tensors;
  int64_t channels = 3;
  std::vector<int64_t> layers(kConvolutions.begin(), kConvolutions.end());
  layers.push_back(kLastConvolution);
  for (const int64_t layer : layers) {
    const auto tensor = [&](const char* kind) {
      const std::string name = fmt::format("features.{}.{}", layer, kind);
      const auto found = tensors.find(name);
      if (found == tensors.end()) {
        throw Error(
            fmt::format("{} has no {}, so it is not torchvision's VGG19; this makes one: {}", path,
                        name, export_line()));
      }
      return found->second.to(device, at::kFloat);
    };
    Conv conv{layer, tensor("weight"), tensor("bias")};
    const bool fits = conv.weight.dim() == 4 && conv.weight.size(1) == channels &&
                      conv.weight.size(2) == 3 && conv.weight.size(3) == 3 &&
                      conv.bias.sizes() == at::IntArrayRef{conv.weight.size(0)};
    if (!fits) {
      throw Error(fmt::format(
          "{}: expected features.{} to be a 3x3 convolution of {} channels, "
          "found the weight {} and the bias {}",
          path, layer, channels, describe_tensor(conv.weight), describe_tensor(conv.bias)));
    }
    channels = conv.weight.size(0);
    convolutions_.push_back(std::move(conv));
  }
}

at::Tensor Vgg19::normalized(const at::Tensor& images) const {
  check_images(images, 1);
  return ((images + 1) / 2).clamp(0, 1).sub(mean_).div(deviation_);
}

std::vector<at::Tensor> Vgg19::features(const at::Tensor& images,
                                        const std::vector<int64_t>& places) const {
  const int64_t last = places.empty() ? 0 : places.back();
  const auto poolings = std::count_if(kAfterPooling.begin(), kAfterPooling.end(),
                                      [&](int64_t place) { return place <= last; });
  const int64_t least = int64_t{1} << poolings;
  check_images(images, least);
  std::vector<at::Tensor> outputs;
  at::Tensor x = images;
  for (const auto& [layer, weight, bias] : convolutions_) {
    if (outputs.size() == places.size()) break;
    if (contains(kAfterPooling, layer)) x = at::max_pool2d(x, 2);
    x = at::relu(at::conv2d(x, weight, bias, /*stride=*/1, /*padding=*/1));
    if (layer == places[outputs.size()]) outputs.push_back(x);
  }
  if (outputs.size() == places.size()) return outputs;
  throw Error(fmt::format("VGG19 has no convolution at features.{} up to features.{}",
                          places[outputs.size()], kLastConvolution));
}

std::vector<at::Tensor> Vgg19::forward(const at::Tensor& images, size_t count) const {
  std::vector<at::Tensor> outputs = features(
      normalized(images), {kWanted.begin(), kWanted.begin() + static_cast<std::ptrdiff_t>(count)});
  outputs.insert(outputs.begin(), images);
  return outputs;
}

PerceptualLoss::PerceptualLoss(const Config& config, const c10::Device& device)
    : weights_(config.get(kWeights, std::vector<double>(Vgg19::kLayers + 1, 1.0))),
      gram_weights_(config.get(kGramWeights, std::vector<double>(Vgg19::kLayers, 0.0))),
      vgg_(load_vgg19(config, device)) {
  if (weights_.size() != Vgg19::kLayers + 1) {
    throw config.error(kWeights, fmt::format("expected {} numbers, for the images and {} layers of "
                                             "VGG19, found {}",
                                             Vgg19::kLayers + 1, Vgg19::kLayers, weights_.size()));
  }
  if (gram_weights_.size() != Vgg19::kLayers) {
    throw config.error(kGramWeights, fmt::format("expected {} numbers, for layers of VGG19, found "
                                                 "{}",
                                                 Vgg19::kLayers, gram_weights_.size()));
  }
  for (size_t i = 0; i < Vgg19::kLayers; ++i) {
    if (weights_[i + 1] != 0 || gram_weights_[i] != 0) layers_ = i + 1;
  }
}

at::Tensor PerceptualLoss::operator()(const at::Tensor& image, const at::Tensor& target) const {
  std::vector<at::Tensor> expected;
  {
    const at::NoGradGuard no_grad;
    expected = vgg_.forward(target, layers_);
  }
  const std::vector<at::Tensor> found = vgg_.forward(image, layers_);
  at::Tensor sum = l1(found[0], expected[0]) * weights_[0];
  for (size_t i = 1; i < found.size(); ++i) {
    if (weights_[i] != 0) sum = sum + l1(found[i], expected[i]) * weights_[i];
    const double weight = gram_weights_[i - 1];
    if (weight != 0) sum = sum + l1(gram(found[i]), gram(expected[i])) * weight;
  }
  return sum;
}

VggLoss::VggLoss(const Config& config, const c10::Device& device)
    : vgg_(load_vgg19(config, device)), normalizes_(config.get("normalize", false)) {}

std::vector<at::Tensor> VggLoss::features(const at::Tensor& images) const {
  return vgg_.features(normalizes_ ? vgg_.normalized(images) : images, {2, 7, 14});
}

at::Tensor VggLoss::operator()(const at::Tensor& image, const at::Tensor& target) const {
  std::vector<at::Tensor> expected;
  {
    const at::NoGradGuard no_grad;
    expected = features(target);
  }
  const std::vector<at::Tensor> found = features(image);
  return l1(found[0], expected[0]) + l1(found[1], expected[1]) + l1(found[2], expected[2]);
}

}  // namespace stepop::losses
