#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::losses {

/// The convolutions of VGG19 (Simonyan and Zisserman, 2015) with fixed weights, which measure how
/// images look.
///
/// The weights come from a safetensors file with torchvision's names, `features.0.weight` to
/// `features.30.bias`; the file determines the numbers of channels. This line makes the file:
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

  /// The outputs after the ReLUs of the convolutions at `places`, ascending indices in
  /// torchvision's `features`, without normalization. Throws Error for images that are not
  /// [B, 3, H, W] or have no pixel left in the last layer, and for a place without convolution.
  std::vector<at::Tensor> features(const at::Tensor& images,
                                   const std::vector<int64_t>& places) const;

  /// `images`, [B, 3, H, W] in [-1, 1], as they are, and the first `count` of the layers above for
  /// the `normalized` images: layer i is element i + 1, [B, C, H / 2^i, W / 2^i]. Gradients reach
  /// the images through every element. Throws Error for images that have no pixel left in the last
  /// layer.
  std::vector<at::Tensor> forward(const at::Tensor& images, size_t count = kLayers) const;

  /// Maps images in [-1, 1] to [0, 1], clamps, and normalizes with ImageNet's mean and deviation.
  at::Tensor normalized(const at::Tensor& images) const;

  /// The line that makes the file, for messages.
  static const char* export_line();

 private:
  struct Conv {
    int64_t layer;  ///< The index in torchvision's `features`.
    at::Tensor weight, bias;
  };

  std::vector<Conv> convolutions_;
  at::Tensor mean_, deviation_;  ///< [1, 3, 1, 1]
};

/// The perceptual loss of two images (Johnson, Alahi and Fei-Fei, 2016): the weighted sum of six
/// mean absolute differences, of the images and of five layers, as VUNet has it. With weights for
/// Gram matrices it also compares style (Gatys, Ecker and Bethge, 2016): how strongly two channels
/// of a layer occur together, wherever in the image, F F^T / (4 H W) [C, C], as edflow has it.
class PerceptualLoss {
 public:
  /// `config` is the loss's own part: `vgg19`, the file of weights, and `vgg_feat_weights`, six
  /// numbers, by default all 1, and `gram_weights`, five numbers, by default all 0. Throws
  /// UsageError with the place; for a missing file also with the line that makes it.
  PerceptualLoss(const Config& config, const c10::Device& device);

  /// For images [B, 3, H, W] in [-1, 1]: [B]. The gradient reaches `image`, not `target`.
  at::Tensor operator()(const at::Tensor& image, const at::Tensor& target) const;

 private:
  std::vector<double> weights_;
  std::vector<double> gram_weights_;
  Vgg19 vgg_;
  size_t layers_ = 0;  ///< The number of layers that are needed.
};

/// The sum of the mean absolute differences of three layers of VGG19, relu1_2, relu2_2 and relu3_3,
/// as in NectarGAN (github.com/ZacharyBork/NectarGAN).
class VggLoss {
 public:
  /// `config` is the loss's own part: `vgg19`, the file of weights, and `normalize`, whether images
  /// are first normalized for VGG19; by default false, as in NectarGAN. Throws like PerceptualLoss.
  VggLoss(const Config& config, const c10::Device& device);

  /// For images [B, 3, H, W] in [-1, 1]: [B]. The gradient reaches `image`, not `target`.
  at::Tensor operator()(const at::Tensor& image, const at::Tensor& target) const;

 private:
  std::vector<at::Tensor> features(const at::Tensor& images) const;

  Vgg19 vgg_;
  bool normalizes_;
};

}  // namespace stepop::losses
