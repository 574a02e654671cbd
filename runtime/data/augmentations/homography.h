#pragma once

#include <array>

namespace stepop {

/// A place in pixels; (0, 0) is the centre of the first pixel.
struct PixelPosition {
  double x = 0;
  double y = 0;
};

/// A plane projective transformation of places: row-major [3, 3].
struct Homography {
  std::array<double, 9> values = {1, 0, 0, 0, 1, 0, 0, 0, 1};

  PixelPosition operator()(PixelPosition place) const;
  Homography operator*(const Homography& first) const;
  Homography inverse() const;
};

/// Turns by `degrees` clockwise, enlarges by `scale` and shears by the angles `shear_x` and
/// `shear_y`, in degrees, about the middle of an image; then moves by `shift`, in pixels. The order
/// and the directions are those of torchvision.transforms.functional.affine.
struct AffineOptions {
  double degrees = 0;
  PixelPosition shift = {};
  double scale = 1;
  double shear_x = 0;
  double shear_y = 0;
};
Homography affine(const AffineOptions& options, PixelPosition middle);

/// The homography that moves four places; no three of them may lie on a line.
Homography homography_between(const std::array<PixelPosition, 4>& from,
                              const std::array<PixelPosition, 4>& to);

}  // namespace stepop
