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
  explicit ToyGenerator(const Config& params)
      : input_(params, "", 3),
        scale_(params.get_at_least("scale", 1, 2)),
        conv1_(conv3x3(3, params.get_at_least("nf", 1, 8))),
        norm_(params.get_at_least("nf", 1, 8)),
        conv2_(conv3x3(params.get_at_least("nf", 1, 8), 3 * scale_ * scale_)) {
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
  explicit ToyDiscriminator(const Config& params)
      : input_(params, "", 3),
        conv1_(conv3x3(3, params.get_at_least("nf", 1, 8), 2)),
        conv2_(conv3x3(params.get_at_least("nf", 1, 8), params.get_at_least("nf", 1, 8), 2)),
        linear_(params.get_at_least("nf", 1, 8), 1) {
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

template <class Class>
std::shared_ptr<nn::Module> make(const Config& params) {
  return std::make_shared<networks::Built<Class>>(params);
}

STEPOP_REGISTER(models(), "toy_g", make<ToyGenerator>,
                {"A small network that makes images larger, to try a training with.",
                 {{"nf", "8", "channels"}, {"scale", "2", "how many times larger"}}});
STEPOP_REGISTER(models(), "toy_d", make<ToyDiscriminator>,
                {"A small discriminator of images, to try a training with.",
                 {{"nf", "8", "channels"}}});

}  // namespace
}  // namespace stepop
