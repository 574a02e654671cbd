#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace stepop::srgan {

/// The activation of ESRGAN: a leaky ReLU with a slope of 0.2.
at::Tensor activated(const at::Tensor& x);

/// A convolution that keeps sizes, except for the stride, with Kaiming's initialization times 0.1,
/// so that a residual block changes little at first.
torch::nn::Conv2d small_conv(int64_t in, int64_t out, int64_t kernel = 3, int64_t stride = 1);

/// Five convolutions, each of which sees the outputs of all earlier convolutions.
class DenseBlock : public torch::nn::Module {
 public:
  /// `growth`: channels that each convolution adds.
  DenseBlock(int64_t channels, int64_t growth);
  /// [B, channels, H, W] to the same.
  at::Tensor forward(const at::Tensor& input);

 private:
  std::vector<torch::nn::Conv2d> convolutions_;
};

/// Three dense blocks in a residual block: the RRDB of ESRGAN (Wang et al., 2018). Parameters have
/// the names of DL-Art-School and BasicSR.
class ResidualDenseBlocks : public torch::nn::Module {
 public:
  /// `has_bypass`: each place of the image weighs the blocks by a number in [0, 1], as in
  /// DL-Art-School's RRDBWithBypass; `channels` is then a multiple of 8.
  ResidualDenseBlocks(int64_t channels, int64_t growth, bool has_bypass = false);
  /// [B, channels, H, W] to the same.
  at::Tensor forward(const at::Tensor& input);

 private:
  std::vector<std::shared_ptr<DenseBlock>> blocks_;
  torch::nn::Sequential bypass_{nullptr};  ///< Null without one.
};

}  // namespace stepop::srgan
