#include <fmt/format.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

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
  explicit LeNet(const Config& params) {
    const auto size = params.get("image_size", std::vector<int64_t>{28, 28});
    const auto hidden = params.get("hidden", std::vector<int64_t>{120, 84});
    const auto channels = params.get_at_least("channels", 1, 1);
    const auto classes = params.get_at_least("classes", 1, 10);
    const auto padding = params.get("padding", std::vector<int64_t>{2, 0});
    if (size.size() != 2)
      throw params.error("image_size", "expected a height and a width: [28, 28]");
    if (hidden.size() != 2) throw params.error("hidden", "expected two widths: [120, 84]");
    if (padding.size() != 2) throw params.error("padding", "expected one number a layer: [2, 0]");
    const int64_t height = pooled(pooled(size[0], padding[0]), padding[1]);
    const int64_t width = pooled(pooled(size[1], padding[0]), padding[1]);
    if (height < 1 || width < 1) {
      throw params.error("image_size",
                         fmt::format("images of {} x {} are too small for two 5x5 convolutions and "
                                     "two poolings; larger images or more padding fit",
                                     size[0], size[1]));
    }
    input_.emplace(params, "channels", channels, "image_size", size);
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

STEPOP_REGISTER_MODEL(LeNet,
                      {"LeNet-5: two convolutions, three linear layers.",
                       {{"image_size", "[28, 28]", "height and width of the images"},
                        {"channels", "1", "channels of the images"},
                        {"classes", "10", "number of logits"},
                        {"hidden", "[120, 84]", "widths of the two hidden layers"},
                        {"padding", "[2, 0]", "zeros around the input of each convolution"}}});

}  // namespace stepop
