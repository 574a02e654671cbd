#include "models/vunet/blocks.h"

#include <ATen/ops/_weight_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/norm_except_dim.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/modules/conv.h>

#include <utility>

namespace stepop::vunet {
namespace {

struct ConvShape {
  int64_t in, out, kernel, stride;
};

at::Tensor convolved(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const ConvShape& shape) {
  return at::conv2d(x, weight, bias, shape.stride, shape.kernel / 2);
}

/// The initial weight and bias of a Conv2d in PyTorch.
std::pair<at::Tensor, at::Tensor> first_weights(const ConvShape& shape) {
  torch::nn::Conv2dOptions options(shape.in, shape.out, shape.kernel);
  const torch::nn::Conv2d conv(options);
  return {conv->weight.detach(), conv->bias.detach()};
}

class PlainConv : public Conv {
 public:
  explicit PlainConv(const ConvShape& shape) : shape_(shape) {
    const auto [weight, bias] = first_weights(shape);
    weight_ = register_parameter("weight", weight);
    bias_ = register_parameter("bias", bias);
  }
  at::Tensor forward(const at::Tensor& x) const override {
    return convolved(x, weight_, bias_, shape_);
  }

 private:
  ConvShape shape_;
  at::Tensor weight_, bias_;
};

/// The parameters of a Conv2d with PyTorch's weight_norm.
struct WeightNormalized : torch::nn::Module {
  explicit WeightNormalized(const ConvShape& shape) {
    const auto [weight, first_bias] = first_weights(shape);
    bias = register_parameter("bias", first_bias);
    weight_g = register_parameter("weight_g", at::norm_except_dim(weight, 2, 0));
    weight_v = register_parameter("weight_v", weight);
  }
  at::Tensor weight_g, weight_v, bias;
};

class NormConv : public Conv {
 public:
  explicit NormConv(const ConvShape& shape)
      : shape_(shape),
        conv_(register_module("conv", std::make_shared<WeightNormalized>(shape))),
        gamma_(register_parameter("gamma", at::ones({1, shape.out, 1, 1}))),
        beta_(register_parameter("beta", at::zeros({1, shape.out, 1, 1}))) {}

  at::Tensor forward(const at::Tensor& x) const override {
    // gamma conv(x) + beta. Gamma and beta are multiplied into the weights, which are smaller than
    // the convolution's output.
    const at::Tensor scale = conv_->weight_g * gamma_.transpose(0, 1);  // [out, 1, 1, 1]
    const at::Tensor weight = at::_weight_norm(conv_->weight_v, scale, 0);
    const at::Tensor bias = conv_->bias * gamma_.flatten() + beta_.flatten();
    return convolved(x, weight, bias, shape_);
  }

 private:
  ConvShape shape_;
  std::shared_ptr<WeightNormalized> conv_;
  at::Tensor gamma_, beta_;
};

}  // namespace

std::shared_ptr<Conv> make_conv(const Options& options, int64_t in, int64_t out, int64_t kernel,
                                int64_t stride) {
  const ConvShape shape{in, out, kernel, stride};
  if (options.normalized_convolutions) return std::make_shared<NormConv>(shape);
  return std::make_shared<PlainConv>(shape);
}

ResBlock::ResBlock(const Options& options, int64_t channels, bool has_skip)
    : dropout_(options.dropout) {
  conv2d_ = register_module(
      "conv2d", make_conv(options, has_skip ? 2 * channels : channels, channels, /*kernel=*/3));
  if (has_skip) pre_ = register_module("pre", make_conv(options, channels, channels));
}

at::Tensor ResBlock::forward(const at::Tensor& x) const { return added(x, at::elu(x)); }

at::Tensor ResBlock::forward(const at::Tensor& x, const at::Tensor& skip) const {
  at::Tensor both = at::cat({x, pre_->forward(skip)}, 1);  // [B, 2 C, H, W]
  return added(x, at::elu_(both));
}

at::Tensor ResBlock::added(const at::Tensor& x, const at::Tensor& activated) const {
  const bool drops = dropout_ > 0 && is_training();
  return x + conv2d_->forward(drops ? at::dropout(activated, dropout_, true) : activated);
}

Down::Down(const Options& options, int64_t in, int64_t out)
    : down_(register_module("down", make_conv(options, in, out, /*kernel=*/3, /*stride=*/2))) {}

Up::Up(const Options& options, int64_t in, int64_t out)
    : up_(register_module("up", make_conv(options, in, 4 * out, /*kernel=*/3))) {}

at::Tensor Up::forward(const at::Tensor& x) const { return depth_to_space(up_->forward(x)); }

at::Tensor space_to_depth(const at::Tensor& x) {
  const int64_t height = x.size(2) / 2;
  const int64_t width = x.size(3) / 2;
  return x.reshape({x.size(0), x.size(1), height, 2, width, 2})
      .permute({0, 3, 5, 1, 2, 4})
      .reshape({x.size(0), 4 * x.size(1), height, width});
}

at::Tensor depth_to_space(const at::Tensor& x) {
  const int64_t channels = x.size(1) / 4;
  return x.reshape({x.size(0), 2, 2, channels, x.size(2), x.size(3)})
      .permute({0, 3, 4, 1, 5, 2})
      .reshape({x.size(0), channels, 2 * x.size(2), 2 * x.size(3)});
}

std::string stage_name(int64_t stage) { return fmt::format("s{}", stage); }
std::string block_name(int64_t stage, int64_t block) { return fmt::format("s{}_{}", stage, block); }

}  // namespace stepop::vunet
