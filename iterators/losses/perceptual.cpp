#include "iterators/losses/perceptual.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <filesystem>

#include "iterators/losses/image_losses.h"

namespace stepop::losses {
namespace {

constexpr const char* kFile = "vgg19";
constexpr const char* kWeights = "vgg_feat_weights";

}  // namespace

PerceptualLoss::PerceptualLoss(const Config& config, const c10::Device& device)
    : weights_(config.get(kWeights, std::vector<double>(Vgg19::kLayers + 1, 1.0))),
      vgg_(load(config, device)) {
  if (weights_.size() != Vgg19::kLayers + 1) {
    throw config.error(kWeights, fmt::format("expected {} numbers, for the images and {} layers of "
                                             "VGG19, found {}",
                                             Vgg19::kLayers + 1, Vgg19::kLayers, weights_.size()));
  }
  for (size_t i = 0; i < Vgg19::kLayers; ++i) {
    if (weights_[i + 1] != 0) layers_ = i + 1;
  }
}

Vgg19 PerceptualLoss::load(const Config& config, const c10::Device& device) {
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
  }
  return sum;
}

}  // namespace stepop::losses
