// A callback for the images of any evaluation.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "eval_out/callbacks/row_values.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "iterators/metrics/similarity.h"
#include "runtime/core/base/error.h"
#include "runtime/core/system/atomic_file.h"

namespace stepop::metrics {
namespace {

void check_image_pair(const RowValues& prediction, const RowValues& target) {
  check_images(prediction);
  check_images(target);
  check_pair(prediction, target);
  const auto& shape = target.shape();
  if (shape[shape.size() - 1] < kSsimWindow || shape[shape.size() - 2] < kSsimWindow) {
    throw Error(fmt::format("SSIM needs images of at least {} x {} pixels, {} has {}", kSsimWindow,
                            kSsimWindow, target.name(), shape_text(shape)));
  }
}

/// The value of black in floats. A range of its own is counted from 0, unless the target has values
/// far below.
double black_in(const RowValues& target, double range) {
  if (range == 2 || target.dtype() == at::kByte) return black_of(range);
  constexpr double kFarBelow = 0.25;  // more than a resized picture swings below its black
  double least = 0;
  for_each_block(target.rows(), target.rows_per_block(), [&](int64_t first, int64_t count) {
    least = std::min(least, target.read(first, count).min().item<double>());
  });
  return least < -kFarBelow * range ? -range / 2 : 0;
}

/// The rows as images [rows, C, H, W], float64, with the black of `black_of(range)`.
at::Tensor images_of(const at::Tensor& rows, double range, double black) {
  const at::Tensor images = (rows.dim() == 3 ? rows.unsqueeze(1) : rows).to(at::kDouble);
  if (rows.scalar_type() == at::kByte) return images.mul(range / 255).add(black_of(range));
  return images.sub(black - black_of(range));
}

/// Throws Error for a true image that cannot have this range.
void check_range(const RowValues& target, const at::Tensor& images, double range, int64_t first) {
  const double least = images.min().item<double>();
  const double most = images.max().item<double>();
  const double black = black_of(range);
  // Numbers of a network or a resized picture may be beyond it, and not by as much again.
  if (least >= black - range && most <= black + 2 * range) return;
  throw Error(
      fmt::format("{} has values from {:.4g} to {:.4g} from {} on, and data_range is {}: "
                  "give the largest possible value minus the smallest",
                  target.name(), least, most, target.row_text(first), range));
}

struct ImageMetricParams {
  std::string prediction = "prediction";
  std::string target = "target";
  double data_range = 2;

  void declare(Parameters& p) {
    p.add("prediction", prediction, "the key of the images, in the outputs or the dataset");
    p.add("target", target, "the key of the true ones, in the outputs or the dataset");
    p.add("data_range", data_range,
          "the largest value minus the smallest: 2 for [-1, 1], 1 for [0, 1]; uint8 is taken to it",
          above(0));
  }
};

Logs image_metrics(const CallbackArguments& arguments, const ImageMetricParams& params) {
  using From = RowValues::From;
  const RowValues prediction(arguments, params.prediction, "prediction", From::kFileOrDataset);
  const RowValues target(arguments, params.target, "target", From::kFileOrDataset);
  const double range = params.data_range;
  check_image_pair(prediction, target);
  const double black = black_in(target, range);

  AtomicFile file(arguments.path_of("values.csv"));
  file.write("index,psnr,ssim\n");
  double psnr_sum = 0;
  double ssim_sum = 0;
  const int64_t block = std::min(prediction.rows_per_block(), target.rows_per_block());
  for_each_block(prediction.rows(), block, [&](int64_t first, int64_t count) {
    const at::Tensor index = arguments.data_out.index(first, count);
    const at::Tensor predicted = prediction.read(first, count);
    const at::Tensor truth = target.read(first, count);
    prediction.refuse_nan(predicted, first);
    target.refuse_nan(truth, first);
    const at::Tensor fake = images_of(predicted, range, black);
    const at::Tensor real = images_of(truth, range, black);
    check_range(target, real, range, first);
    for (int64_t i = 0; i < count; ++i) {
      arguments.data_out.throw_if_interrupted();
      const at::Tensor a = fake.slice(0, i, i + 1);
      const at::Tensor b = real.slice(0, i, i + 1);
      const double row_psnr = psnr(a, b, range).item<double>();
      const double row_ssim = ssim(a, b, range).item<double>();
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
    {"PSNR in dB and SSIM (Wang et al., 2004) of images, the mean over the examples."});
STEPOP_CALLBACK_KEYS(image_metrics, {"prediction"}, {"target"});

}  // namespace
}  // namespace stepop::metrics
