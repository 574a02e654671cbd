#include <ATen/ops/cat.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/reflection_pad2d.h>
#include <fmt/format.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/image_input.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

namespace nn = torch::nn;

/// The discriminator of pix2pix (Isola et al., 2017): two images [B, in_channels, H, W], the
/// generator's input and its output, to logits [B, 1, h, w], each of which sees a patch. Parameters
/// have NectarGAN's names.
class PatchGan : public MultiNetwork {
 public:
  struct Params {
    int64_t in_channels = 3;
    int64_t out_channels = 3;
    int64_t base_channels = 64;
    int64_t max_channels = 512;
    int64_t n_layers = 3;

    void declare(Parameters& p) {
      p.add("in_channels", in_channels, "of the image that goes into the generator", at_least(1));
      out_channels = in_channels;
      p.add("out_channels", out_channels, "of the image that comes out, by default as many",
            at_least(1));
      p.add("base_channels", base_channels, "channels of the first layer", at_least(1));
      p.add("max_channels", max_channels, "the most that a layer has", at_least(1));
      p.add("n_layers", n_layers, "3: a logit sees 34 x 34 pixels; 4: 70 x 70", at_least(1));
    }
  };

  PatchGan(const Params& params, const Config& config) {
    const auto& [in, of_second, base, most, n_layers] = params;
    inputs_ = {{config, "in_channels", in}, {config, "out_channels", of_second}};
    const auto model = register_module("model", std::make_shared<nn::Module>());
    layers_.push_back({model->register_module("0", conv(in + of_second, base, 2, true)), false});
    int64_t channels = base;
    int64_t place = 2;  // the index in the original's list, in which activations count
    for (int64_t i = 1; i < n_layers; ++i, ++place) {
      const int64_t out = std::min(channels * 2, most);
      const auto block =
          model->register_module(std::to_string(place), std::make_shared<nn::Module>());
      const auto inner = block->register_module("conv", std::make_shared<nn::Module>());
      const int64_t stride = i == n_layers - 1 ? 1 : 2;
      layers_.push_back({inner->register_module("0", conv(channels, out, stride, false)), true});
      channels = out;
    }
    last_ = model->register_module(std::to_string(place), conv(channels, 1, 1, true));
  }

  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    if (inputs.size() != 2) {
      throw Error(
          fmt::format("PatchGan: expected two images, what goes into a generator and what "
                      "comes out, found {}",
                      inputs.size()));
    }
    inputs_[0].check(inputs[0]);
    inputs_[1].check(inputs[1]);
    at::Tensor x = at::cat(inputs, 1);
    for (auto& layer : layers_) {
      x = convolved(layer.conv, x);
      if (layer.has_norm) {
        x = at::instance_norm(x, {}, {}, {}, {}, /*use_input_stats=*/true, /*momentum=*/0.1,
                              /*eps=*/1e-5, /*cudnn_enabled=*/true);
      }
      x = at::leaky_relu(x, 0.2);
    }
    return {convolved(last_, x)};
  }

 private:
  struct Layer {
    nn::Conv2d conv;
    bool has_norm;
  };

  static nn::Conv2d conv(int64_t in, int64_t out, int64_t stride, bool has_bias) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 4).stride(stride).bias(has_bias));
  }

  static at::Tensor convolved(nn::Conv2d& conv, const at::Tensor& x) {
    return conv->forward(at::reflection_pad2d(x, {1, 1, 1, 1}));
  }

  std::vector<ImageInput> inputs_;
  std::vector<Layer> layers_;
  nn::Conv2d last_{nullptr};
};

STEPOP_REGISTER_MODEL(PatchGan,
                      {"The discriminator of pix2pix: two images to a logit for each patch."});

}  // namespace
}  // namespace stepop
