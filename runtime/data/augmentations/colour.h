#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "runtime/core/base/random.h"

namespace stepop {

// Changes of colours. Images are float [C, H, W] in [0, 1], and so are the results: what leaves
// that range is cut off. Three channels are red, green and blue.

/// 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601): [1, H, W]. One channel is grey already.
at::Tensor grey_of(const at::Tensor& image);

/// `factor` times as bright.
at::Tensor with_brightness(const at::Tensor& image, double factor);
/// All values `factor` times as far from the mean of the grey image.
at::Tensor with_contrast(const at::Tensor& image, double factor);
/// All colours `factor` times as far from grey: 0 is grey, 1 is as it was.
at::Tensor with_saturation(const at::Tensor& image, double factor);
/// All hues moved by a share of the colour circle: a third turns red into green. Three channels.
at::Tensor with_hue(const at::Tensor& image, double turn);
/// Each value to the power of `gamma`: below 1 is brighter.
at::Tensor with_gamma(const at::Tensor& image, double gamma);

/// How a grey image is made of a coloured one: `weighted_average`, as grey_of; `average`;
/// `desaturation`, half of the largest and the smallest channel; `max`, the largest.
enum class GreyMethod : uint8_t { kWeightedAverage, kAverage, kDesaturation, kMax };
/// The image in grey, with as many channels.
at::Tensor in_grey(const at::Tensor& image, GreyMethod method);

/// Normal noise of its own for each value, with that standard deviation.
at::Tensor with_noise(const at::Tensor& image, double deviation, Random& random);

/// Each pixel becomes the sum of those around it, times the numbers of `kernel` [size, size], an
/// odd size. The border is repeated.
at::Tensor with_motion(const at::Tensor& image, const at::Tensor& kernel);
/// The pixels of a line at a random angle through a random place, as in albumentations 2.0: float
/// [size, size] whose sum is 1.
at::Tensor motion_kernel(int64_t size, Random& random);

/// As it comes back from a JPEG of that quality, 1 to 100. With one channel or three.
at::Tensor through_jpeg(const at::Tensor& image, int quality);

}  // namespace stepop
