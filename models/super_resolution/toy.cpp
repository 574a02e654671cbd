#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/pixel_shuffle.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "runtime/train/networks/image_input.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

namespace nn = torch::nn;

nn::Conv2d conv3x3(int64_t in, int64_t out, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1));
}

/// Makes images larger: [B, 3, H, W] -> [B, 3, scale H, scale W].
class ToyGenerator : public Network {
 public:
  struct Params {
    int64_t nf = 8;
    int64_t scale = 2;

    void declare(Parameters& p) {
      p.add("nf", nf, "channels", at_least(1));
      p.add("scale", scale, "how many times larger", at_least(1));
    }
  };

  ToyGenerator(const Params& params, const Config& config)
      : input_(config, "", 3),
        scale_(params.scale),
        conv1_(conv3x3(3, params.nf)),
        norm_(params.nf),
        conv2_(conv3x3(params.nf, 3 * scale_ * scale_)) {
    register_module("conv1", conv1_);
    register_module("norm", norm_);
    register_module("conv2", conv2_);
  }

  at::Tensor forward(const at::Tensor& image) override {
    input_.check(image);
    const at::Tensor x = at::relu(norm_->forward(conv1_->forward(image)));
    return at::pixel_shuffle(conv2_->forward(x), scale_);
  }

 private:
  ImageInput input_;
  int64_t scale_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm_;
  nn::Conv2d conv2_;
};

/// Images to one logit each: [B, 3, H, W] -> [B, 1].
class ToyDiscriminator : public Network {
 public:
  struct Params {
    int64_t nf = 8;

    void declare(Parameters& p) { p.add("nf", nf, "channels", at_least(1)); }
  };

  ToyDiscriminator(const Params& params, const Config& config)
      : input_(config, "", 3),
        conv1_(conv3x3(3, params.nf, 2)),
        conv2_(conv3x3(params.nf, params.nf, 2)),
        linear_(params.nf, 1) {
    register_module("conv1", conv1_);
    register_module("conv2", conv2_);
    register_module("linear", linear_);
  }

  at::Tensor forward(const at::Tensor& image) override {
    input_.check(image);
    at::Tensor x = at::leaky_relu(conv1_->forward(image), 0.2);
    x = at::leaky_relu(conv2_->forward(x), 0.2);
    return linear_->forward(x.mean(at::IntArrayRef{2, 3}));
  }

 private:
  ImageInput input_;
  nn::Conv2d conv1_;
  nn::Conv2d conv2_;
  nn::Linear linear_;
};

STEPOP_REGISTER_MODEL_AS("toy_g", ToyGenerator,
                         {"A small network that makes images larger, to try a training with."});
STEPOP_REGISTER_MODEL_AS("toy_d", ToyDiscriminator,
                         {"A small discriminator of images, to try a training with."});

}  // namespace
}  // namespace stepop
