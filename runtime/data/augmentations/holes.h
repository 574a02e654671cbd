#pragma once

#include "runtime/data/augmentations/augmentation.h"
#include "runtime/data/augmentations/chance.h"

namespace stepop {

/// Black holes in images.
struct HoleOptions {
  NumberRange count = {.low = 1, .high = 2};        ///< Whole numbers.
  NumberRange heights = {.low = 0.1, .high = 0.2};  ///< As shares of the image's height.
  NumberRange widths = {.low = 0.1, .high = 0.2};
};

/// Makes the holes, at the same places in all images, which must have the same size. Masks, boxes
/// and keypoints stay.
void drop_holes(Scene& scene, const HoleOptions& options, Random& random);

}  // namespace stepop
