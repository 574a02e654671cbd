#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stepop::metrics {

// The similarity of images: one number for each image of two batches [B, C, H, W], float64 [B].
// `peak` is the largest possible pixel value minus the smallest: 2 for images in [-1, 1], else the
// largest value of images whose black is 0, such as 1 or 255. Both functions throw Error for
// batches of different shapes.

/// The value of black: -1 for a `peak` of 2, else 0.
constexpr double black_of(double peak) { return peak == 2 ? -1 : 0; }

/// PSNR in dB, from the mean squared error over pixels and channels; infinite for equal images.
at::Tensor psnr(const at::Tensor& a, const at::Tensor& b, double peak);

/// The side of SSIM's window in pixels, and the smallest side of an image.
inline constexpr int64_t kSsimWindow = 11;

/// SSIM (Wang et al., 2004): a Gaussian window of 11 x 11 pixels with sigma 1.5, K1 = 0.01,
/// K2 = 0.03; the mean over the channels and the windows that lie completely in the image. Throws
/// Error for smaller images.
at::Tensor ssim(const at::Tensor& a, const at::Tensor& b, double peak);

/// The luma of ITU-R BT.601 as in MATLAB's rgb2ycbcr: from images [B, 3, H, W] in [0, 255] a
/// channel [B, 1, H, W] in [16, 235], float64, not rounded. Throws Error for other images.
at::Tensor luma(const at::Tensor& images);

}  // namespace stepop::metrics
