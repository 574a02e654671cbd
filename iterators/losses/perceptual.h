#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::losses {

/// The convolutions of VGG19 (Simonyan and Zisserman, 2015) with fixed weights, as a measure of how
/// images look.
///
/// The weights come from a safetensors file with torchvision's names, `features.0.weight` to
/// `features.30.bias`; the numbers of channels are those of the file. This line makes it:
///
///   python -c "import torchvision.models as m, safetensors.torch as s; s.save_file(
///     m.vgg19(weights='IMAGENET1K_V1').features.state_dict(prefix='features.'),
///     'vgg19.safetensors')"
class Vgg19 {
 public:
  /// relu1_2, relu2_2, relu3_2, relu4_2 and relu5_2.
  static constexpr size_t kLayers = 5;

  /// Throws Error for a file that cannot be read, or does not hold such weights.
  Vgg19(const std::string& path, const c10::Device& device);

  /// Behind the rectifiers of these convolutions, which are named by their places in torchvision's
  /// `features`, in rising order, of what is used as it is. Throws Error for images that are not
  /// [B, 3, H, W] or have not a pixel left in the last layer, and for a place that has none.
  std::vector<at::Tensor> features(const at::Tensor& images,
                                   const std::vector<int64_t>& places) const;

  /// What VGG19 sees, and the first `count` of these layers. `images`: [B, 3, H, W] in [-1, 1],
  /// which are mapped to [0, 1], clamped, and normalized with ImageNet's mean and deviation: that
  /// is element 0. Layer i is element i + 1, [B, C, H / 2^i, W / 2^i]. Gradients reach the images
  /// through every one. Throws Error for images that have not a pixel left in the last layer.
  std::vector<at::Tensor> forward(const at::Tensor& images, size_t count = kLayers) const;

  /// As ImageNet's: images in [-1, 1] to [0, 1], clamped, then by its mean and deviation.
  at::Tensor normalized(const at::Tensor& images) const;

  /// The line that makes the file, for messages.
  static const char* export_line();

 private:
  struct Conv {
    int64_t layer;  ///< Its place in torchvision's `features`.
    at::Tensor weight, bias;
  };

  std::vector<Conv> convolutions_;
  at::Tensor mean_, deviation_;  ///< [1, 3, 1, 1]
};

/// How differently two images look to VGG19 (Johnson, Alahi and Fei-Fei, 2016): the sum of six
/// weighted mean absolute differences, of the images as VGG19 sees them and of five layers.
class PerceptualLoss {
 public:
  /// `config` is the loss's own part: `vgg19`, the file of weights, and `vgg_feat_weights`, six
  /// numbers, by default all 1. Throws UsageError with its place, and with the line that makes the
  /// file where it is missing.
  PerceptualLoss(const Config& config, const c10::Device& device);

  /// Of images [B, 3, H, W] in [-1, 1]: [B]. The gradient reaches `image`, not `target`.
  at::Tensor operator()(const at::Tensor& image, const at::Tensor& target) const;

 private:
  std::vector<double> weights_;
  Vgg19 vgg_;
  size_t layers_ = 0;  ///< Those that have a weight.
};

/// The sum of the mean absolute differences of three layers of VGG19, relu1_2, relu2_2 and relu3_3,
/// as NectarGAN has it (github.com/ZacharyBork/NectarGAN).
class VggLoss {
 public:
  /// `config` is the loss's own part: `vgg19`, the file of weights, and `normalize`, whether images
  /// are first mapped as VGG19 was trained; by default not, as in NectarGAN. Throws as
  /// PerceptualLoss does.
  VggLoss(const Config& config, const c10::Device& device);

  /// Of images [B, 3, H, W] in [-1, 1]: [B]. The gradient reaches `image`, not `target`.
  at::Tensor operator()(const at::Tensor& image, const at::Tensor& target) const;

 private:
  std::vector<at::Tensor> features(const at::Tensor& images) const;

  Vgg19 vgg_;
  bool normalizes_;
};

}  // namespace stepop::losses
