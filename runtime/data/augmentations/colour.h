#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "runtime/core/base/random.h"
#include "runtime/data/augmentations/chance.h"

namespace stepop {

// Changes of colours. Images are float [C, H, W] in [0, 1]. Results are clamped to the same range.
// Three channels are red, green and blue.

/// Changes the colours of an image [C, H, W] in [-1, 1]: calls `change` with three channels, or
/// with one, in [0, 1]. Alpha, a fourth channel, stays as it is. In an image with two channels, or
/// with more than four, each channel is changed by itself.
at::Tensor with_colours(const at::Tensor& image,
                        const std::function<at::Tensor(const at::Tensor&)>& change);

/// 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601): [1, H, W]. An image with one channel is grey
/// already.
at::Tensor grey_of(const at::Tensor& image);

/// The image, `factor` times as bright.
at::Tensor with_brightness(const at::Tensor& image, double factor);
/// The image with all values `factor` times as far from the mean of the grey image.
at::Tensor with_contrast(const at::Tensor& image, double factor);
/// The image with all colours `factor` times as far from grey: 0 gives grey, 1 changes nothing.
at::Tensor with_saturation(const at::Tensor& image, double factor);
/// The image with all hues moved by a share of the colour circle: a third turns red into green. The
/// image must have three channels.
at::Tensor with_hue(const at::Tensor& image, double turn);
/// How brightness, contrast, saturation (factors) and hue (a share of the colour circle) may
/// change.
struct JitterRanges {
  NumberRange brightness;
  NumberRange contrast;
  NumberRange saturation;
  NumberRange hue;
};
/// A change of all four, in a random order. An image without colours keeps its saturation and hue.
std::function<at::Tensor(const at::Tensor&)> draw_jitter(const JitterRanges& ranges,
                                                         Random& random);

/// All four by up to `strength`: factors of 1 - strength to 1 + strength, and a turn of up to that
/// share of the colour circle.
at::Tensor with_jitter(const at::Tensor& image, double strength, Random& random);

/// The image with each value raised to the power of `gamma`: a gamma below 1 makes it brighter.
at::Tensor with_gamma(const at::Tensor& image, double gamma);

/// How a grey image is made from a coloured image: `weighted_average`, as in grey_of; `average`;
/// `desaturation`, the mean of the largest and the smallest channel; `max`, the largest channel;
/// `from_lab`, the lightness L* of CIELAB; `pca`, the first principal component of the colours,
/// stretched to 0 .. 1, in which the channel that counts most grows.
enum class GreyMethod : uint8_t { kWeightedAverage, kAverage, kDesaturation, kMax, kFromLab, kPca };
/// The image in grey, with as many channels.
at::Tensor in_grey(const at::Tensor& image, GreyMethod method);

/// The image with independent normal noise added to each value; `deviation` is the standard
/// deviation.
at::Tensor with_noise(const at::Tensor& image, double deviation, Random& random);

// As in torchvision.transforms.v2.functional, for float images.

/// Each value rounded down to one of 2^bits; `bits` is 1 to 8.
at::Tensor with_posterization(const at::Tensor& image, int bits);
/// Values of `threshold` and above are inverted.
at::Tensor with_solarization(const at::Tensor& image, double threshold);
/// Each channel stretched to 0 .. 1.
at::Tensor with_autocontrast(const at::Tensor& image);
/// Each channel, in 256 steps, with an even histogram.
at::Tensor with_equalization(const at::Tensor& image);
/// All values but those at the border `factor` times as far from a smoothed image: 0 gives the
/// smoothed image, 1 changes nothing.
at::Tensor with_sharpness(const at::Tensor& image, double factor);
/// Blurred by a Gaussian of `size` x `size` pixels, an odd number; the border is reflected.
at::Tensor with_blur(const at::Tensor& image, int64_t size, double deviation);

/// The image convolved with `kernel` [size, size], where size is odd. The border is repeated.
at::Tensor with_motion(const at::Tensor& image, const at::Tensor& kernel);
/// The pixels of a line at a random angle through a random place, as in albumentations 2.0: float
/// [size, size] whose sum is 1.
at::Tensor motion_kernel(int64_t size, Random& random);

/// The image after JPEG compression with `quality`, 1 to 100. The image must have one channel or
/// three.
at::Tensor through_jpeg(const at::Tensor& image, int quality);
/// The same with WebP, whose library must be there: need_webp().
at::Tensor through_webp(const at::Tensor& image, int quality);

}  // namespace stepop
