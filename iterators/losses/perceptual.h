#pragma once

#include <vector>

#include "iterators/losses/vgg19.h"
#include "runtime/config/config.h"

namespace stepop::losses {

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
  static Vgg19 load(const Config& config, const c10::Device& device);

  std::vector<double> weights_;
  Vgg19 vgg_;
  size_t layers_ = 0;  ///< Those that have a weight.
};

}  // namespace stepop::losses
