// A callback for the images of any evaluation.
#include <fmt/format.h>

#include <algorithm>

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
      const at::Tensor a = to_images(said.slice(0, i, i + 1));
      const at::Tensor b = to_images(truth.slice(0, i, i + 1));
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
    {"PSNR in dB and SSIM (Wang et al., 2004) of images, the mean over the examples.",
     {{"prediction", "prediction", "the key of the images, in the outputs or the dataset"},
      {"target", "target", "the key of the true ones, in the outputs or the dataset"},
      {"data_range", "2", "the largest value minus the smallest; uint8 is taken to [-1, 1]"}}});
STEPOP_CALLBACK_KEYS(image_metrics, {"prediction"}, {"target"});

}  // namespace
}  // namespace stepop::metrics
