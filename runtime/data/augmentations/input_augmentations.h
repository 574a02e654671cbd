#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"
#include "runtime/data/augmentations/chance.h"
#include "runtime/data/augmentations/colour.h"

namespace stepop {

/// Changes of a pair's input only: its colours, noise, blur, compression. The keys and defaults
/// match NectarGAN's `augmentations/input`. There, `colorjitter_` also changes contrast, saturation
/// and hue; here these have their own keys too.
///
/// A fourth channel, alpha, stays as it is. In an image with two channels, or with more than four,
/// each channel is changed as a grey image, and hue, saturation and grayscale have no effect.
class InputAugmentations {
 public:
  explicit InputAugmentations(const Config& params);

  /// A changed copy of an image [C, H, W] in [-1, 1], or the image itself when nothing happens.
  at::Tensor apply(const at::Tensor& image, Random& random) const;

  /// For `stepop list`; names begin with `augmentations/input/`.
  static std::vector<Parameter> parameters();

 private:
  double jitter_;
  JitterRanges jitter_ranges_;
  double noise_;
  NumberRange noise_deviation_;
  double motion_;
  int64_t motion_limit_;
  double gamma_;
  NumberRange gamma_percent_;
  double grey_;
  GreyMethod grey_method_ = GreyMethod::kWeightedAverage;
  double compression_;
  NumberRange quality_;
  bool is_webp_ = false;
};

}  // namespace stepop
