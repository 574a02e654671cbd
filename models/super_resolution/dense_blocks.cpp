#include "models/super_resolution/dense_blocks.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/sigmoid.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/normalization.h>

namespace stepop::srgan {
namespace {

namespace nn = torch::nn;

/// A convolution of the bypass, and what follows it.
class BypassConvolution : public nn::Module {
 public:
  BypassConvolution(int64_t in, int64_t out, bool has_norm, bool has_activation)
      : convolution_(register_module(
            "conv", nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(has_norm)))),
        has_activation_(has_activation) {
    const at::NoGradGuard no_grad;
    const auto gain = has_activation ? nn::init::NonlinearityType(torch::kReLU)
                                     : nn::init::NonlinearityType(torch::kLinear);
    nn::init::kaiming_normal_(convolution_->weight, 0, torch::kFanOut, gain);
    if (!has_norm) return;
    convolution_->bias.zero_();
    norm_ = register_module("gn", nn::GroupNorm(nn::GroupNormOptions(8, out)));
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor x = convolution_->forward(input);
    if (norm_) x = norm_->forward(x);
    return has_activation_ ? x * at::sigmoid(x) : x;
  }

 private:
  nn::Conv2d convolution_;
  nn::GroupNorm norm_{nullptr};
  bool has_activation_;
};

}  // namespace

at::Tensor activated(const at::Tensor& x) { return at::leaky_relu(x, 0.2); }

nn::Conv2d small_conv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  nn::Conv2d conv(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
  const at::NoGradGuard no_grad;
  nn::init::kaiming_normal_(conv->weight, 0, torch::kFanIn, torch::kReLU);
  conv->weight.mul_(0.1);
  conv->bias.zero_();
  return conv;
}

DenseBlock::DenseBlock(int64_t channels, int64_t growth) {
  for (int64_t i = 0; i < 5; ++i) {
    convolutions_.push_back(
        register_module(fmt::format("conv{}", i + 1),
                        small_conv(channels + i * growth, i == 4 ? channels : growth)));
  }
}

at::Tensor DenseBlock::forward(const at::Tensor& input) {
  std::vector<at::Tensor> seen = {input};
  for (size_t i = 0; i + 1 < convolutions_.size(); ++i) {
    seen.push_back(activated(convolutions_[i]->forward(at::cat(seen, 1))));
  }
  return convolutions_.back()->forward(at::cat(seen, 1)) * 0.2 + input;
}

ResidualDenseBlocks::ResidualDenseBlocks(int64_t channels, int64_t growth, bool has_bypass) {
  for (const char* name : {"rdb1", "rdb2", "rdb3"}) {
    blocks_.push_back(register_module(name, std::make_shared<DenseBlock>(channels, growth)));
  }
  if (!has_bypass) return;
  bypass_ = register_module("bypass", nn::Sequential());
  bypass_->push_back(std::make_shared<BypassConvolution>(2 * channels, channels, true, true));
  bypass_->push_back(std::make_shared<BypassConvolution>(channels, channels / 2, false, true));
  bypass_->push_back(std::make_shared<BypassConvolution>(channels / 2, 1, false, false));
}

at::Tensor ResidualDenseBlocks::forward(const at::Tensor& input) {
  at::Tensor x = input;
  for (const auto& block : blocks_) x = block->forward(x);
  if (!bypass_) return x * 0.2 + input;
  return x * 0.2 * at::sigmoid(bypass_->forward(at::cat({input, x}, 1))) + input;
}

}  // namespace stepop::srgan
