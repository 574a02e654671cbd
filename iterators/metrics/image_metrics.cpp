#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "eval_out/callbacks/row_values.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/system/atomic_file.h"

namespace stepop {
namespace {

/// The window of SSIM: a Gaussian of 11 x 11 pixels.
constexpr int64_t kWindow = 11;
constexpr double kSigma = 1.5;
constexpr double kK1 = 0.01;
constexpr double kK2 = 0.03;

std::array<double, kWindow> gaussian() {
  std::array<double, kWindow> weights{};
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double x = static_cast<double>(i) - static_cast<double>(kWindow / 2);
    sum += weights[i] = std::exp(-x * x / (2 * kSigma * kSigma));
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// The mean over the window around each pixel whose whole window is in the image: `planes`
/// [..., H, W] becomes [..., H - 10, W - 10].
at::Tensor windowed_mean(at::Tensor planes) {
  static const auto kWeights = gaussian();
  for (const int64_t dimension : {-1, -2}) {
    const int64_t length = planes.size(dimension) - kWindow + 1;
    at::Tensor sum = planes.slice(dimension, 0, length).mul(kWeights[0]);
    for (int64_t i = 1; i < kWindow; ++i) {
      sum.add_(planes.slice(dimension, i, i + length), kWeights[static_cast<size_t>(i)]);
    }
    planes = sum;
  }
  return planes;
}

/// Both float64 [C, H, W]; the mean over the channels.
double ssim(const at::Tensor& a, const at::Tensor& b, double range) {
  const at::Tensor means =
      windowed_mean(at::stack({a, b, a.mul(a), b.mul(b), a.mul(b)}));  // [5, C, H', W']
  const at::Tensor mean_product = means[0].mul(means[1]);
  const at::Tensor mean_squares = means[0].square().add(means[1].square());
  const at::Tensor covariance = means[4].sub(mean_product);
  const at::Tensor variances = means[2].add(means[3]).sub(mean_squares);
  const double c1 = std::pow(kK1 * range, 2);
  const double c2 = std::pow(kK2 * range, 2);
  const at::Tensor above = mean_product.mul(2).add(c1).mul(covariance.mul(2).add(c2));
  const at::Tensor below = mean_squares.add(c1).mul(variances.add(c2));
  return above.div(below).mean().item<double>();
}

/// In dB; infinite for equal images.
double psnr(const at::Tensor& a, const at::Tensor& b, double range) {
  const double error = a.sub(b).square().mean().item<double>();
  return error == 0 ? std::numeric_limits<double>::infinity()
                    : 10 * std::log10(range * range / error);
}

void check_image_pair(const RowValues& prediction, const RowValues& target) {
  check_images(prediction);
  check_images(target);
  check_pair(prediction, target);
  const auto& shape = target.shape();
  if (shape[shape.size() - 1] < kWindow || shape[shape.size() - 2] < kWindow) {
    throw Error(fmt::format("SSIM needs images of at least {} x {} pixels, {} has {}", kWindow,
                            kWindow, target.name(), shape_text(shape)));
  }
}

Logs image_metrics(const CallbackArguments& arguments) {
  using From = RowValues::From;
  const Config& params = arguments.params;
  const RowValues prediction(arguments, params.get("prediction", "prediction"), "prediction",
                             From::kFileOrDataset);
  const RowValues target(arguments, params.get("target", "target"), "target", From::kFileOrDataset);
  const auto range = params.get("data_range", 2.0);
  if (!(range > 0)) throw params.error("data_range", "expected a number above 0");
  check_image_pair(prediction, target);

  AtomicFile file(arguments.path_of("values.csv"));
  file.write("index,psnr,ssim\n");
  double psnr_sum = 0;
  double ssim_sum = 0;
  const int64_t block = std::min(prediction.rows_per_block(), target.rows_per_block());
  for_each_block(prediction.rows(), block, [&](int64_t first, int64_t count) {
    const at::Tensor index = arguments.data_out.index(first, count);
    const at::Tensor said = prediction.read(first, count);
    const at::Tensor truth = target.read(first, count);
    prediction.refuse_nan(said, first);
    target.refuse_nan(truth, first);
    for (int64_t i = 0; i < count; ++i) {
      arguments.data_out.throw_if_interrupted();
      const at::Tensor a = to_images(said.slice(0, i, i + 1))[0].to(at::kDouble);
      const at::Tensor b = to_images(truth.slice(0, i, i + 1))[0].to(at::kDouble);
      const double row_psnr = psnr(a, b, range);
      const double row_ssim = ssim(a, b, range);
      file.write(fmt::format("{},{},{}\n", index.const_data_ptr<int64_t>()[i], row_psnr, row_ssim));
      psnr_sum += row_psnr;
      ssim_sum += row_ssim;
    }
  });
  file.commit();
  Logs logs;
  logs.scalars.set("psnr", psnr_sum / static_cast<double>(prediction.rows()));
  logs.scalars.set("ssim", ssim_sum / static_cast<double>(prediction.rows()));
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    image_metrics, image_metrics,
    {"PSNR in dB and SSIM (Wang et al., 2004) of images, the mean over the examples.",
     {{"prediction", "prediction", "the key of the images, in the outputs or the dataset"},
      {"target", "target", "the key of the true ones, in the outputs or the dataset"},
      {"data_range", "2", "the largest value minus the smallest; uint8 is taken to [-1, 1]"}}});

}  // namespace
}  // namespace stepop
