#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "runtime/core/base/random.h"
#include "runtime/core/components/parameters.h"

namespace stepop {

/// Where each pixel of a warped image is taken from: float [H, W, 2], x and y, in pixels of the
/// image. The centre of the first pixel is at (0, 0).
using WarpMap = at::Tensor;

/// The map that changes nothing.
WarpMap identity_map(int64_t height, int64_t width);

/// The image [C, H, W] warped by the map: interpolation is bilinear, and the border is repeated
/// beyond the image.
at::Tensor warp(const at::Tensor& image, const WarpMap& map);

/// An elastic transformation (Simard, Steinkraus and Platt, 2003) as albumentations 2.0 has it:
/// normal noise for each pixel and direction, divided by its largest value, blurred by a Gaussian
/// with the standard deviation `sigma`, in pixels, and multiplied by `alpha`. So with alpha = 1
/// nothing moves by more than a pixel.
WarpMap elastic_map(int64_t height, int64_t width, double alpha, double sigma, Random& random);

/// OpenCV's camera with the radial coefficients k1 = k2 = `k` and a focal length of the image's
/// sides: a point at (x, y) from the centre, in shares of the sides, is taken from
/// (1 + k r^2 + k r^4) times that place. `k` below 0 magnifies the borders, above 0 shrinks them.
WarpMap camera_map(int64_t height, int64_t width, double k);

/// The fisheye of albumentations: (1 + k r^2) times the place, r is 1 in the corners.
WarpMap fisheye_map(int64_t height, int64_t width, double k);

using LensMap = WarpMap(int64_t height, int64_t width, double k);
/// Declares a lens: `camera`, the default, or `fisheye`.
void add_lens(Parameters& p, std::string_view name, LensMap*& lens);

}  // namespace stepop
