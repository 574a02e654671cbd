// What a small VUNet learns in half a minute, on people whom it never saw.
#include <doctest/doctest.h>

#include "tests/iterators/vunet/vunet_run.h"

namespace stepop {
namespace learning_test {

TEST_CASE("a trained VUNet puts the clothes of some people on the poses of others") {
  TestRun run(R"(
iterator: VUNetIterator
model: {class: VUNet, spatial_size: 32, nf_start: 16, nf_max: 32}
losses: {color_L1: {weight: 3}, color_L2: {weight: 10}, color_chroma: {weight: 30}}
datasets:
  train: {class: Figures, size: 32, examples: 60000, num_people: 15000}
  validation: {class: Figures, size: 32, examples: 128, num_people: 128, offset: 60000}
batch_size: 4
test_batch_size: 32
num_steps: 900
optimizer: {class: Adam, lr: {class: cosine, from: 2e-3, to: 1e-5, steps: 900}, clip_norm: 1}
log_ops: []
num_threads: 1
n_data_processes: 0
eval_mode: appearance_transfer
eval_hook:
  eval_op: validation/transfer_op
  eval_callbacks: {truth: figures_transfer}
)");
  run.train();
  const auto metrics = run.metrics().back();
  const auto psnr = [&](const std::string& name) {
    return metrics.at("validation/transfer_op/truth/" + name).get<double>();
  };
  CAPTURE(psnr("psnr"));
  CAPTURE(psnr("psnr_of_copied_appearance"));
  CAPTURE(psnr("psnr_of_copied_pose"));
  // Better than the right clothes in a wrong pose, and than the right pose in wrong clothes: both
  // were taken over.
  CHECK(psnr("psnr") > psnr("psnr_of_copied_appearance") + 1);
  CHECK(psnr("psnr") > psnr("psnr_of_copied_pose") + 4);
}

}  // namespace learning_test
}  // namespace stepop
