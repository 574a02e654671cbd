#include "iterators/metrics/similarity.h"

#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::metrics {
namespace {

constexpr double kSigma = 1.5;
constexpr double kK1 = 0.01;
constexpr double kK2 = 0.03;

void check_batches(const char* name, const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() == 4 && a.sizes() == b.sizes() && a.numel() > 0) return;
  throw Error(
      fmt::format("{}: expected two batches of images [B, C, H, W] of one shape, found {} "
                  "and {}",
                  name, describe_tensor(a), describe_tensor(b)));
}

std::array<double, kSsimWindow> gaussian() {
  std::array<double, kSsimWindow> weights{};
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double x = static_cast<double>(i) - static_cast<double>(kSsimWindow / 2);
    sum += weights[i] = std::exp(-x * x / (2 * kSigma * kSigma));
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// The weighted mean over each window that lies completely in the image: `planes` [..., H, W]
/// becomes [..., H - 10, W - 10].
at::Tensor windowed_mean(at::Tensor planes) {
  static const auto kWeights = gaussian();
  for (const int64_t dimension : {-1, -2}) {
    const int64_t length = planes.size(dimension) - kSsimWindow + 1;
    at::Tensor sum = planes.slice(dimension, 0, length).mul(kWeights[0]);
    for (int64_t i = 1; i < kSsimWindow; ++i) {
      sum.add_(planes.slice(dimension, i, i + length), kWeights[static_cast<size_t>(i)]);
    }
    planes = sum;
  }
  return planes;
}

}  // namespace

at::Tensor psnr(const at::Tensor& a, const at::Tensor& b, double peak) {
  check_batches("psnr", a, b);
  const at::Tensor error = a.to(at::kDouble).sub(b.to(at::kDouble)).square().flatten(1).mean(1);
  return error.reciprocal().mul(peak * peak).log10().mul(10);
}

at::Tensor ssim(const at::Tensor& a, const at::Tensor& b, double peak) {
  check_batches("ssim", a, b);
  if (a.size(2) < kSsimWindow || a.size(3) < kSsimWindow) {
    throw Error(fmt::format("SSIM needs images of at least {} x {} pixels, found {}", kSsimWindow,
                            kSsimWindow, describe_tensor(a)));
  }
  // SSIM compares means, so black has to be 0.
  const double black = black_of(peak);
  const at::Tensor x = a.to(at::kDouble).sub(black);
  const at::Tensor y = b.to(at::kDouble).sub(black);
  const at::Tensor means =
      windowed_mean(at::stack({x, y, x.mul(x), y.mul(y), x.mul(y)}));  // [5, B, C, H', W']
  const at::Tensor mean_product = means[0].mul(means[1]);
  const at::Tensor mean_squares = means[0].square().add(means[1].square());
  const at::Tensor covariance = means[4].sub(mean_product);
  const at::Tensor variances = means[2].add(means[3]).sub(mean_squares);
  const double c1 = std::pow(kK1 * peak, 2);
  const double c2 = std::pow(kK2 * peak, 2);
  const at::Tensor above = mean_product.mul(2).add(c1).mul(covariance.mul(2).add(c2));
  const at::Tensor below = mean_squares.add(c1).mul(variances.add(c2));
  return above.div(below).flatten(1).mean(1);
}

at::Tensor luma(const at::Tensor& images) {
  if (images.dim() != 4 || images.size(1) != 3) {
    throw Error(
        fmt::format("luma is that of colours, [B, 3, H, W], found {}", describe_tensor(images)));
  }
  const at::Tensor x = images.to(at::kDouble);
  const at::Tensor sum =
      x.narrow(1, 0, 1).mul(65.481).add(x.narrow(1, 1, 1), 128.553).add(x.narrow(1, 2, 1), 24.966);
  return sum.div(255).add(16);
}

}  // namespace stepop::metrics
