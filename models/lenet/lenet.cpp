#include <fmt/format.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <optional>
#include <vector>

#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/image_input.h"
#include "runtime/train/networks/network.h"

namespace stepop {

/// LeNet-5 with rectifiers (LeCun et al., "Gradient-Based Learning Applied to Document
/// Recognition", 1998): two 5x5 convolutions of 6 and 16 channels, each followed by 2x2 max
/// pooling, then 120, 84 and `classes` units. Images [B, C, H, W] to logits [B, classes].
class LeNet : public Network {
 public:
  struct Params {
    std::array<int64_t, 2> image_size = {28, 28};
    int64_t channels = 1;
    int64_t classes = 10;
    std::array<int64_t, 2> hidden = {120, 84};
    std::array<int64_t, 2> padding = {2, 0};

    void declare(Parameters& p) {
      p.add("image_size", image_size, "height and width of the images", at_least(1));
      p.add("channels", channels, "channels of the images", at_least(1));
      p.add("classes", classes, "number of logits", at_least(1));
      p.add("hidden", hidden, "widths of the two hidden layers", at_least(1));
      p.add("padding", padding, "zeros around the input of each convolution", at_least(0));
    }
  };

  LeNet(const Params& params, const Config& config) {
    const auto& [size, channels, classes, hidden, padding] = params;
    const int64_t height = pooled(pooled(size[0], padding[0]), padding[1]);
    const int64_t width = pooled(pooled(size[1], padding[0]), padding[1]);
    if (height < 1 || width < 1) {
      throw config.error("image_size",
                         fmt::format("images of {} x {} are too small for two 5x5 convolutions and "
                                     "two poolings; larger images or more padding fit",
                                     size[0], size[1]));
    }
    input_.emplace(config, "channels", channels, "image_size", std::vector{size[0], size[1]});
    conv1_ = register_module(
        "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, 6, 5).padding(padding[0])));
    conv2_ = register_module(
        "conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 16, 5).padding(padding[1])));
    fc1_ = register_module("fc1", torch::nn::Linear(16 * height * width, hidden[0]));
    fc2_ = register_module("fc2", torch::nn::Linear(hidden[0], hidden[1]));
    fc3_ = register_module("fc3", torch::nn::Linear(hidden[1], classes));
  }

  at::Tensor forward(const at::Tensor& images) override {
    input_->check(images);
    auto x = at::max_pool2d(at::relu(conv1_->forward(images)), 2);   // [B, 6, H/2, W/2]
    x = at::max_pool2d(at::relu(conv2_->forward(x)), 2).flatten(1);  // [B, 16 * h * w]
    if (x.size(1) != fc1_->options.in_features()) input_->refuse(images);
    x = at::relu(fc1_->forward(x));
    x = at::relu(fc2_->forward(x));
    return checkpointed(*fc3_, x);  // float32_modules may name it
  }

 private:
  /// The length of a side after a 5x5 convolution and a 2x2 pooling.
  static int64_t pooled(int64_t side, int64_t padding) { return (side + 2 * padding - 4) / 2; }

  std::optional<ImageInput> input_;
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  torch::nn::Linear fc1_{nullptr}, fc2_{nullptr}, fc3_{nullptr};
};

STEPOP_REGISTER_MODEL(LeNet, {"LeNet-5: two convolutions, three linear layers."});

}  // namespace stepop
