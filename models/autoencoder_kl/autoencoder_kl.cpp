#include "models/autoencoder_kl/autoencoder_kl.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace autoencoder_kl {

namespace nn = torch::nn;

constexpr int64_t kMostGroups = 8;
constexpr double kNormEpsilon = 1e-6;

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
}

/// Group normalization, then SiLU.
class Activation : public nn::Module {
 public:
  explicit Activation(int64_t channels)
      : groups_(std::gcd(channels, kMostGroups)),
        weight_(register_parameter("weight", at::ones({channels}))),
        bias_(register_parameter("bias", at::zeros({channels}))) {}
  at::Tensor forward(const at::Tensor& x) {
    return at::silu(at::group_norm(x, groups_, weight_, bias_, kNormEpsilon));
  }

 private:
  int64_t groups_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// A layer from images to images.
class Part : public nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

class Residual : public Part {
 public:
  Residual(int64_t in, int64_t out)
      : norm1_(register_module("norm1", std::make_shared<Activation>(in))),
        conv1_(register_module("conv1", convolution(in, out, 3))),
        norm2_(register_module("norm2", std::make_shared<Activation>(out))),
        conv2_(register_module("conv2", convolution(out, out, 3))) {
    if (in != out) skip_ = register_module("skip", convolution(in, out, 1));
  }
  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor h = conv2_->forward(norm2_->forward(conv1_->forward(norm1_->forward(x))));
    return (skip_ ? skip_->forward(x) : x) + h;
  }

 private:
  std::shared_ptr<Activation> norm1_;
  nn::Conv2d conv1_{nullptr};
  std::shared_ptr<Activation> norm2_;
  nn::Conv2d conv2_{nullptr};
  nn::Conv2d skip_{nullptr};
};

/// A convolution; its input is normalized and activated with `has_norm`, and doubled in size with
/// `grows`.
class Layer : public Part {
 public:
  Layer(int64_t in, int64_t out, int64_t stride, bool has_norm, bool grows)
      : conv_(register_module("conv", convolution(in, out, 3, stride))), grows_(grows) {
    if (has_norm) norm_ = register_module("norm", std::make_shared<Activation>(in));
  }
  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor h = norm_ ? norm_->forward(x) : x;
    if (grows_) h = at::upsample_nearest2d(h, {2 * h.size(2), 2 * h.size(3)});
    return conv_->forward(h);
  }

 private:
  nn::Conv2d conv_{nullptr};
  bool grows_;
  std::shared_ptr<Activation> norm_;
};

/// Parts one after another, named 0, 1, ....
class Stack : public nn::Module {
 public:
  void add(std::shared_ptr<Part> part) {
    parts_.push_back(register_module(std::to_string(parts_.size()), std::move(part)));
  }
  at::Tensor forward(at::Tensor x) {
    for (const auto& part : parts_) x = checkpointed(*part, x);
    return x;
  }

 private:
  std::vector<std::shared_ptr<Part>> parts_;
};

}  // namespace autoencoder_kl

namespace {

using autoencoder_kl::Layer;
using autoencoder_kl::Residual;

}  // namespace

void AutoencoderKL::Params::declare(Parameters& p) {
  p.add("image_size", image_size, "height and width", at_least(1));
  p.add("channels", channels, "of the images", at_least(1));
  p.add("latent_channels", latent_channels, "of the latents", at_least(1));
  p.add("base_channels", base_channels, "of the first layer", at_least(1));
  p.add("channel_mult", channel_mult,
        "channels of each level, times the base; each has half of the size", at_least(1));
}

AutoencoderKL::AutoencoderKL(const Params& params, const Config& config)
    : channels_(params.channels), latent_channels_(params.latent_channels) {
  std::vector<int64_t> levels = params.channel_mult;  // channels, the largest images first
  if (levels.empty() || levels.size() > 16) {
    throw config.error("channel_mult", "expected a number for each level, 1 to 16 of them");
  }
  for (auto& level : levels) level *= params.base_channels;
  factor_ = int64_t{1} << (levels.size() - 1);
  const auto& size = params.image_size;
  if (size[0] % factor_ != 0 || size[1] % factor_ != 0) {
    throw config.error("image_size",
                       fmt::format("expected [height, width], multiples of {}: channel_mult has {} "
                                   "levels",
                                   factor_, levels.size()));
  }
  height_ = size[0];
  width_ = size[1];

  const auto layer = [](int64_t in, int64_t out, int64_t stride, bool has_norm, bool grows) {
    return std::make_shared<Layer>(in, out, stride, has_norm, grows);
  };
  encoder_ = register_module("encoder", std::make_shared<autoencoder_kl::Stack>());
  encoder_->add(layer(channels_, levels.front(), 1, false, false));
  for (size_t i = 0; i < levels.size(); ++i) {
    if (i > 0) encoder_->add(layer(levels[i - 1], levels[i - 1], 2, false, false));
    encoder_->add(std::make_shared<Residual>(levels[i > 0 ? i - 1 : 0], levels[i]));
  }
  encoder_->add(layer(levels.back(), 2 * latent_channels_, 1, true, false));
  decoder_ = register_module("decoder", std::make_shared<autoencoder_kl::Stack>());
  decoder_->add(layer(latent_channels_, levels.back(), 1, false, false));
  for (size_t i = levels.size(); i-- > 0;) {
    const int64_t out = levels[i > 0 ? i - 1 : 0];
    decoder_->add(std::make_shared<Residual>(levels[i], out));
    if (i > 0) decoder_->add(layer(out, out, 1, false, true));
  }
  decoder_->add(layer(levels.front(), channels_, 1, true, false));
}

AutoencoderKL::Posterior AutoencoderKL::encode(const at::Tensor& images) {
  const bool fits = images.dim() == 4 && images.size(1) == channels_ && images.size(2) == height_ &&
                    images.size(3) == width_;
  if (!fits) {
    throw Error(fmt::format("AutoencoderKL: expected images [B, {}, {}, {}], found {}", channels_,
                            height_, width_, describe_tensor(images)));
  }
  const auto parts = encoder_->forward(images).chunk(2, 1);
  return {parts[0], parts[1].clamp(-30, 20)};
}

at::Tensor AutoencoderKL::decode(const at::Tensor& latents) { return decoder_->forward(latents); }

std::vector<int64_t> AutoencoderKL::latent_shape() const {
  return {latent_channels_, height_ / factor_, width_ / factor_};
}

at::Tensor AutoencoderKL::Posterior::sample() const {
  return mean + (0.5 * log_variance).exp() * at::randn_like(mean);
}

at::Tensor AutoencoderKL::Posterior::kl() const {
  return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).flatten(1).sum(1);
}

STEPOP_REGISTER_MODEL(AutoencoderKL,
                      {"An autoencoder with normally distributed latents, of convolutions."});

}  // namespace stepop
