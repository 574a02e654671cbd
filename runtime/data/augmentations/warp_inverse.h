#pragma once

#include <vector>

#include "runtime/data/augmentations/homography.h"
#include "runtime/data/augmentations/warp.h"

namespace stepop {

/// Where places of an image lie in the warped image: the inverse of a map, bilinear between the
/// pixels' centres. Beyond the border what lies there moves as far as the nearest place of the
/// border. Where a map folds, several places of the warped image show one place.
class WarpInverse {
 public:
  explicit WarpInverse(const WarpMap& map);

  /// The places within the warped image that show `place`; where there are none, the nearest one
  /// beyond its border.
  std::vector<PixelPosition> all(PixelPosition place) const;
  /// The one of them that is nearest to `place`.
  PixelPosition nearest(PixelPosition place) const;

 private:
  PixelPosition moved(int64_t x, int64_t y) const;
  void find_in_cell(int64_t x, int64_t y, PixelPosition place,
                    std::vector<PixelPosition>& found) const;
  void find_pixels(int64_t left, int64_t right, int64_t top, int64_t bottom, PixelPosition place,
                   std::vector<PixelPosition>& found) const;
  std::vector<PixelPosition> beyond_border(PixelPosition place) const;

  at::Tensor shift_;            ///< [H, W, 2]: the map without the pixel's own place.
  PixelPosition least_, most_;  ///< The smallest and the largest shifts.
};

}  // namespace stepop
