#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"
#include "runtime/data/augmentations/chance.h"
#include "runtime/data/augmentations/holes.h"
#include "runtime/data/augmentations/warp.h"

namespace stepop {

/// Changes that apply to both images of a pair alike, so that their pixels still correspond:
/// mirroring, turning, warping, holes. The keys and defaults match NectarGAN's
/// `augmentations/both`. The border is repeated where a warp looks beyond it.
class JointAugmentations {
 public:
  /// `scale`: how many times larger the first image is. Above 1 the images can be mirrored and
  /// turned; any other change is an error.
  explicit JointAugmentations(const Config& params, int64_t scale = 1);

  /// Changes images [C, H, W] in [-1, 1], whose numbers of channels may differ.
  void apply(at::Tensor& first, at::Tensor& second, Random& random) const;

  /// For `stepop list`; names begin with `augmentations/both/`.
  static std::vector<Parameter> parameters();

 private:
  struct Params {
    double mirror = 0.5;
    double turn_over = 0;
    double turn = 0;
    double elastic = 0;
    double elastic_alpha = 1;
    double elastic_sigma = 50;
    double distortion = 0;
    NumberRange distortion_strength{.low = -0.05, .high = 0.05};
    LensMap* lens = nullptr;
    double dropout = 0;
    HoleOptions holes;

    void declare(Parameters& p);
  };

  Params p_;
};

}  // namespace stepop
