#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
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
  struct Params {
    double jitter = 0;
    JitterRanges jitter_ranges{.brightness = {.low = 0.8, .high = 1.2},
                               .contrast = {.low = 0.8, .high = 1.2},
                               .saturation = {.low = 0.8, .high = 1.2},
                               .hue = {.low = -0.5, .high = 0.5}};
    double noise = 0;
    NumberRange noise_deviation{.low = 0.2, .high = 0.44};
    double motion = 0;
    int64_t motion_limit = 7;
    double gamma = 0;
    NumberRange gamma_percent{.low = 80, .high = 120};
    double grey = 0;
    GreyMethod grey_method = GreyMethod::kWeightedAverage;
    double compression = 0;
    std::string compression_type = "jpeg";
    NumberRange quality{.low = 99, .high = 100};

    void declare(Parameters& p);
  };

  Params p_;
};

}  // namespace stepop
