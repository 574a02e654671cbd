// Callbacks over the outputs of VUNetIterator's eval_op and transfer_op.

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "eval_out/callbacks/callback.h"
#include "iterators/vunet/data/figures.h"
#include "iterators/vunet/pictures.h"

namespace stepop {
namespace {

/// The appearance images of the transfers, which are fixed examples: [N, C, H, W].
at::Tensor appearances_of(const CallbackArguments& arguments, const at::Tensor& indices) {
  std::vector<at::Tensor> images;
  for (int64_t i = 0; i < indices.numel(); ++i) {
    images.push_back(arguments.fixed_example(indices[i].item<int64_t>()).tensors.at("appearance"));
  }
  return at::stack(images);
}

struct ReconstructionParams {
  int64_t count = 8;

  void declare(Parameters& p) { p.add("count", count, "examples", at_least(1)); }
};

/// Appearance, pose, target, prediction and a sample of the prior; each example is a column.
Logs reconstruction(const CallbackArguments& arguments, const ReconstructionParams& params) {
  const EvalFile& file = arguments.data_out;
  const int64_t count = std::min(params.count, file.rows());
  const Batch examples = arguments.examples(0, count);
  std::vector<at::Tensor> rows;
  for (const char* key : {"appearance", "stickman", "target"}) rows.push_back(examples[key]);
  for (const char* key : {"outputs/prediction", "outputs/sample"}) {
    rows.push_back(file.read(key, 0, count));
  }
  return {.images = {{"reconstruction", vunet::picture_of_rows(rows)}}};
}

struct TransferParams {
  int64_t poses = 8;

  void declare(Parameters& p) { p.add("poses", poses, "columns", at_least(1)); }
};

Logs transfer_matrix(const CallbackArguments& arguments, const TransferParams& params) {
  const EvalFile& file = arguments.data_out;
  const int64_t count = std::min(params.poses, file.rows());
  const at::Tensor appearances = file.read("outputs/appearance_index", 0, 1)[0];  // [R]
  return {.images = {{"transfer", vunet::transfer_matrix(
                                      appearances_of(arguments, appearances),
                                      arguments.examples(0, count)["stickman"],
                                      file.read("outputs/transfer", 0, count).transpose(0, 1))}}};
}

/// The PSNR in dB of images in [-1, 1].
double psnr(const at::Tensor& a, const at::Tensor& b) {
  const double error = (a - b).square().mean().item<double>();
  return 10 * std::log10(4 / std::max(error, 1e-12));
}

/// The mean PSNR of transfers against the true pictures, which Figures can draw; and the PSNR of
/// two baselines without a network, each half right: the appearance's picture, in its own pose, and
/// the pose's picture, with its own person.
Logs figures_transfer(const CallbackArguments& arguments) {
  const auto* figures = dynamic_cast<const vunet::Figures*>(&arguments.data_in);
  if (figures == nullptr) {
    throw Error("only the dataset Figures knows what a transfer should look like");
  }
  const EvalFile& file = arguments.data_out;
  const at::Tensor appearances = file.read("outputs/appearance_index", 0, 1)[0];  // [R]
  const at::Tensor appearance_images = appearances_of(arguments, appearances);
  double transfer = 0;
  double copy_of_appearance = 0;
  double copy_of_pose = 0;
  int64_t count = 0;
  for (int64_t row = 0; row < file.rows(); ++row) {
    file.throw_if_interrupted();
    const auto index = file.index(row, 1);
    const auto example = index[0].item<int64_t>();
    const vunet::Pose pose = figures->pose_of(example);
    const at::Tensor target = arguments.examples(row, 1)["target"][0];
    const at::Tensor images = file.read("outputs/transfer", row, 1)[0];  // [R, 3, H, W]
    for (int64_t r = 0; r < appearances.numel(); ++r) {
      const auto other = appearances[r].item<int64_t>();
      if (figures->person_of(other) == figures->person_of(example)) continue;  // no transfer
      ++count;
      const at::Tensor truth =
          draw_figure(figures->appearance_of(other), pose, figures->image_size());
      transfer += psnr(images[r], truth);
      copy_of_appearance += psnr(appearance_images[r], truth);
      copy_of_pose += psnr(target, truth);
    }
  }
  if (count == 0) throw Error("there are no two people to transfer between");
  const auto mean = [&](double sum) { return sum / static_cast<double>(count); };
  return {.scalars = {{"psnr", mean(transfer)},
                      {"psnr_of_copied_appearance", mean(copy_of_appearance)},
                      {"psnr_of_copied_pose", mean(copy_of_pose)}}};
}

STEPOP_REGISTER_CALLBACK(
    vunet_reconstruction, reconstruction,
    {"A picture: appearance, pose, target, prediction and a sample of the prior, below each "
     "other."});

STEPOP_REGISTER_CALLBACK(
    transfer_matrix, transfer_matrix,
    {"A picture: appearances down the rows, poses across the columns, of transfer_op's outputs."});

STEPOP_REGISTER_CALLBACK(
    figures_transfer, figures_transfer,
    {"PSNR in dB of transfers against what Figures draws, and of two pictures that are half right.",
     {}});

}  // namespace
}  // namespace stepop
