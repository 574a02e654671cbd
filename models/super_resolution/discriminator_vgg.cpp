#include <ATen/ops/leaky_relu.h>
#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <optional>
#include <vector>

#include "runtime/train/networks/image_input.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

namespace nn = torch::nn;

enum class Norm { kBatch, kGroup };

/// The discriminator of SRGAN (Ledig et al., 2017): images [B, in_nc, size, size] to one logit, [B,
/// 1]. Five stages, each of which halves the image. Parameters have the names of DL-Art-School and
/// BasicSR.
class DiscriminatorVgg : public Network {
 public:
  struct Params {
    int64_t in_nc = 3;
    int64_t nf = 64;
    int64_t image_size = 128;
    bool extra_conv = false;

    void declare(Parameters& p) {
      p.add("in_nc", in_nc, "channels that come in", at_least(1));
      p.add("nf", nf, "channels of the first stage", at_least(1));
      p.add("image_size", image_size, "pixels, a multiple of 32", at_least(32));
      p.add("extra_conv", extra_conv, "one stage more");
    }
  };

  DiscriminatorVgg(const Params& params, const Config& config, Norm norm)
      : size_(params.image_size) {
    const int64_t nf = params.nf;
    const int64_t halvings = params.extra_conv ? 6 : 5;
    if (size_ % (int64_t{1} << halvings) != 0) {
      throw config.error("image_size", fmt::format("expected a multiple of {}, found {}",
                                                   int64_t{1} << halvings, size_));
    }
    if (norm == Norm::kGroup && nf % 8 != 0) {
      throw config.error("nf", fmt::format("expected a multiple of 8, the groups, found {}", nf));
    }
    input_.emplace(config, "in_nc", params.in_nc, "image_size", std::vector<int64_t>{size_, size_});
    int64_t channels = params.in_nc;
    for (int64_t stage = 0; stage < halvings; ++stage) {
      const bool is_last_of_batch = stage == 5 && norm == Norm::kBatch;
      const int64_t wide =
          is_last_of_batch ? nf * 16 : nf * (int64_t{1} << std::min<int64_t>(stage, 3));
      add(fmt::format("{}_0", stage), channels, wide, /*kernel=*/3, /*stride=*/1,
          /*has_norm=*/stage > 0, norm);
      add(fmt::format("{}_1", stage), wide, wide, /*kernel=*/4, /*stride=*/2, /*has_norm=*/true,
          norm);
      channels = wide;
    }
    const int64_t left = size_ >> halvings;
    linear1_ = register_module("linear1", nn::Linear(channels * left * left, 100));
    linear2_ = register_module("linear2", nn::Linear(100, 1));
  }

  at::Tensor forward(const at::Tensor& image) override {
    input_->check(image);
    if (image.size(2) != size_ || image.size(3) != size_) input_->refuse(image);
    at::Tensor x = image;
    for (Layer& layer : layers_) {
      x = layer.conv->forward(x);
      if (!layer.batch_norm.is_empty()) x = layer.batch_norm->forward(x);
      if (!layer.group_norm.is_empty()) x = layer.group_norm->forward(x);
      x = at::leaky_relu(x, 0.2);
    }
    x = at::leaky_relu(linear1_->forward(x.flatten(1)), 0.2);
    return linear2_->forward(x);
  }

 private:
  struct Layer {
    nn::Conv2d conv;
    nn::BatchNorm2d batch_norm{nullptr};
    nn::GroupNorm group_norm{nullptr};
  };

  void add(const std::string& name, int64_t in, int64_t out, int64_t kernel, int64_t stride,
           bool has_norm, Norm norm) {
    const auto options = nn::Conv2dOptions(in, out, kernel).stride(stride).padding(1);
    Layer layer{nn::Conv2d(nn::Conv2dOptions(options).bias(!has_norm))};
    register_module("conv" + name, layer.conv);
    if (has_norm && norm == Norm::kBatch) {
      layer.batch_norm = register_module("bn" + name, nn::BatchNorm2d(out));
    } else if (has_norm) {
      layer.group_norm = register_module("bn" + name, nn::GroupNorm(8, out));
    }
    layers_.push_back(std::move(layer));
  }

  int64_t size_;
  std::optional<ImageInput> input_;
  std::vector<Layer> layers_;
  nn::Linear linear1_{nullptr};
  nn::Linear linear2_{nullptr};
};

template <Norm norm>
class VggWith : public DiscriminatorVgg {
 public:
  VggWith(const Params& params, const Config& config) : DiscriminatorVgg(params, config, norm) {}
};

STEPOP_REGISTER_MODEL_AS("discriminator_vgg_128", VggWith<Norm::kBatch>,
                         {"The discriminator of SRGAN: images to one logit."});
STEPOP_REGISTER_MODEL_AS("discriminator_vgg_128_gn", VggWith<Norm::kGroup>,
                         {"The same with group norms."});

}  // namespace
}  // namespace stepop
