#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/image_input.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

namespace nn = torch::nn;

enum class Activation { kLeakyRelu, kRelu, kTanh, kNone };

/// The settings that all blocks of a generator share.
struct BlockKind {
  bool is_residual = false;
  bool is_bilinear = false;  ///< Images are enlarged by bilinear interpolation instead of
                             ///< transposed convolutions.
};

/// The settings of one block of a generator.
struct BlockOptions {
  int64_t in = 0;
  int64_t out = 0;
  bool is_down = false;  ///< The block halves height and width; otherwise it doubles them.
  bool has_norm = false;
  bool has_bias = false;
  bool has_dropout = false;
  Activation activation = Activation::kRelu;
};

/// A module that only groups its children under a name.
std::shared_ptr<nn::Module> make_parent() { return std::make_shared<nn::Module>(); }

/// Convolution, instance norm, activation, dropout: [B, in, H, W] to [B, out, H / 2, W / 2] or
/// [B, out, 2 H, 2 W]. With a residual, a 1 x 1 convolution of the input is added.
class UnetBlock : public nn::Module {
 public:
  UnetBlock(const BlockKind& kind, const BlockOptions& options) : kind_(kind), options_(options) {
    const auto conv = register_module("conv", make_parent());
    if (options.is_down) {
      conv_ = conv->register_module(
          "0", nn::Conv2d(
                   nn::Conv2dOptions(options.in, options.out, 4).stride(2).bias(options.has_bias)));
    } else if (kind.is_bilinear) {
      conv_ = conv->register_module("2", nn::Conv2d(nn::Conv2dOptions(options.in, options.out, 3)));
    } else {
      transposed_ = conv->register_module(
          "0", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(options.in, options.out, 4)
                                       .stride(2)
                                       .padding(1)
                                       .bias(options.has_bias)));
    }
    if (!kind.is_residual || (!options.is_down && options.in == options.out)) return;
    const auto residual = register_module("residual", make_parent());
    if (options.is_down) {
      narrow_ = residual->register_module(
          "0", nn::Conv2d(nn::Conv2dOptions(options.in, options.out, 1).stride(2)));
    } else {
      wide_ = residual->register_module(
          "0",
          nn::ConvTranspose2d(
              nn::ConvTranspose2dOptions(options.in, options.out, 1).stride(2).output_padding(1)));
    }
  }

  /// With `is_last` the activation is applied to the sum, so that the output stays in the
  /// activation's range.
  at::Tensor forward(const at::Tensor& input, bool is_last = false) {
    at::Tensor x = convolved(input);
    if (options_.has_norm) {
      x = at::instance_norm(x, {}, {}, {}, {}, /*use_input_stats=*/true, /*momentum=*/0.1,
                            /*eps=*/1e-5, /*cudnn_enabled=*/true);
    }
    if (kind_.is_residual && is_last) {
      x = activated(x + residual(input));
    } else {
      x = activated(x);
      if (kind_.is_residual) x = x + residual(input);
    }
    return options_.has_dropout ? at::dropout(x, 0.5, is_training()) : x;
  }

 private:
  at::Tensor convolved(const at::Tensor& x) {
    if (options_.is_down) return conv_->forward(at::reflection_pad2d(x, {1, 1, 1, 1}));
    if (!kind_.is_bilinear) return transposed_->forward(x);
    const at::Tensor larger = at::upsample_bilinear2d(x, {2 * x.size(2), 2 * x.size(3)},
                                                      /*align_corners=*/false, 2.0, 2.0);
    return conv_->forward(at::reflection_pad2d(larger, {1, 1, 1, 1}));
  }

  at::Tensor activated(const at::Tensor& x) const {
    if (options_.activation == Activation::kTanh) return at::tanh(x);
    if (options_.activation == Activation::kRelu) return at::relu(x);
    if (options_.activation == Activation::kNone) return x;
    return at::leaky_relu(x, 0.2);
  }

  at::Tensor residual(const at::Tensor& x) {
    if (!narrow_.is_empty()) return at::relu(narrow_->forward(x));
    if (!wide_.is_empty()) return at::relu(wide_->forward(x));
    return at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}, 2.0, 2.0);
  }

  BlockKind kind_;
  BlockOptions options_;
  nn::Conv2d conv_{nullptr};
  nn::ConvTranspose2d transposed_{nullptr};
  nn::Conv2d narrow_{nullptr};
  nn::ConvTranspose2d wide_{nullptr};
};

/// What becomes of the generator's last sum.
enum class LastTanh { kOfSum, kOfConvolution, kNone };

/// The generator of pix2pix (Isola et al., 2017): images [B, in_channels, H, W] to images [B,
/// out_channels, H, W] in [-1, 1], or with `tanh: none` to numbers of any size, such as logits. H
/// and W are multiples of 2^(n_downs + 2). Parameters have NectarGAN's names.
class UnetGenerator : public Network {
 public:
  struct Params {
    std::optional<int64_t> input_size;
    int64_t in_channels = 3;
    int64_t out_channels = 3;
    int64_t features = 64;
    int64_t n_downs = 6;
    int64_t use_dropout_layers = 3;
    std::string block_type = "UnetBlock";
    std::string upconv_type = "Transposed";
    std::string tanh = "sum";

    void declare(Parameters& p) {
      p.add("input_size", input_size, "pixels; one that cannot work is found at the start",
            at_least(1));
      p.add("in_channels", in_channels, "of the images that come in", at_least(1));
      out_channels = in_channels;
      p.add("out_channels", out_channels, "of those that go out, by default as many", at_least(1));
      p.add("features", features,
            "channels of the first block; later ones have up to 8 times as many", at_least(1));
      p.add("n_downs", n_downs, "blocks that halve the image, besides the first and the last",
            at_least(0).at_most(20));
      p.add("use_dropout_layers", use_dropout_layers,
            "of how many blocks that double it, from the deepest on", at_least(0));
      p.add("block_type", block_type, "what a block is made of",
            one_of({"UnetBlock", "ResidualUnetBlock"}));
      p.add("upconv_type", upconv_type, "how sizes are doubled",
            one_of({"Transposed", "Bilinear"}));
      p.add("tanh", tanh,
            "of ResidualUnetBlock's last sum, which stays within [-1, 1]; or convolution: before "
            "the residual is added, as NectarGAN has it; or none: numbers of any size, such as "
            "logits",
            one_of({"sum", "convolution", "none"}));
    }
  };

  UnetGenerator(const Params& params, const Config& config)
      : multiple_(int64_t{1} << (params.n_downs + 2)),
        tanh_(params.tanh == "sum"           ? LastTanh::kOfSum
              : params.tanh == "convolution" ? LastTanh::kOfConvolution
                                             : LastTanh::kNone) {
    const int64_t features = params.features;
    const int64_t in = params.in_channels;
    const int64_t n_downs = params.n_downs;
    const BlockKind kind{.is_residual = params.block_type == "ResidualUnetBlock",
                         .is_bilinear = params.upconv_type == "Bilinear"};
    if (params.input_size) check_input_size(config, *params.input_size, n_downs);

    std::vector<int64_t> channels = {features};  // after each of the down blocks
    for (int64_t i = 0; i < n_downs; ++i) {
      channels.push_back(std::min(channels.back() * 2, features * 8));
    }
    const auto down = [&](int64_t from, int64_t to, bool has_norm, Activation activation) {
      return std::make_shared<UnetBlock>(kind, BlockOptions{.in = from,
                                                            .out = to,
                                                            .is_down = true,
                                                            .has_norm = has_norm,
                                                            .has_bias = !has_norm,
                                                            .activation = activation});
    };
    input_.emplace(config, "in_channels", in);
    initial_down_ =
        register_module("initial_down", down(in, features, false, Activation::kLeakyRelu));
    const auto downs = register_module("downs", make_parent());
    for (size_t i = 1; i < channels.size(); ++i) {
      downs_.push_back(downs->register_module(
          std::to_string(i - 1), down(channels[i - 1], channels[i], true, Activation::kLeakyRelu)));
    }
    bottleneck_ = register_module("bottleneck",
                                  down(channels.back(), channels.back(), false, Activation::kRelu));
    const auto ups = register_module("ups", make_parent());
    for (size_t i = 0; i < channels.size(); ++i) {
      const size_t level = channels.size() - 1 - i;  // the level with the size of the output
      const BlockOptions options{
          .in = i == 0 ? channels.back() : 2 * channels[level + 1],
          .out = channels[level],
          .has_norm = true,
          .has_dropout = static_cast<int64_t>(i) < params.use_dropout_layers};
      ups_.push_back(
          ups->register_module(std::to_string(i), std::make_shared<UnetBlock>(kind, options)));
    }
    final_up_ = register_module(
        "final_up",
        std::make_shared<UnetBlock>(
            kind, BlockOptions{.in = 2 * features,
                               .out = params.out_channels,
                               .has_bias = true,
                               .activation = tanh_ == LastTanh::kNone ? Activation::kNone
                                                                      : Activation::kTanh}));
    initialize();
  }

  at::Tensor forward(const at::Tensor& image) override {
    if (image.dim() != 4 || image.size(2) % multiple_ != 0 || image.size(3) % multiple_ != 0) {
      throw Error(
          fmt::format("UnetGenerator: expected images [B, C, H, W] whose height and width "
                      "are multiples of {}, 2^(n_downs + 2), found {}",
                      multiple_, describe_tensor(image)));
    }
    input_->check(image);
    std::vector<at::Tensor> skips = {checkpointed(*initial_down_, image)};
    for (const auto& down : downs_) skips.push_back(checkpointed(*down, skips.back()));
    at::Tensor x = checkpointed(*bottleneck_, skips.back());
    for (size_t i = 0; i < ups_.size(); ++i) {
      x = checkpointed(*ups_[i], i == 0 ? x : at::cat({x, skips[skips.size() - i]}, 1));
    }
    return checkpointed(*final_up_, at::cat({x, skips.front()}, 1), tanh_ == LastTanh::kOfSum);
  }

 private:
  void check_input_size(const Config& config, int64_t size, int64_t n_downs) const {
    if (size % multiple_ == 0) return;
    throw config.error(
        "input_size",
        fmt::format(
            "expected a multiple of {}, as each of n_downs + 2 = {} blocks halves the image, "
            "found {}; fewer n_downs take smaller images",
            multiple_, n_downs + 2, size));
  }

  void initialize() {
    const torch::NoGradGuard no_grad;
    for (const auto& item : named_parameters()) {
      if (item.key().ends_with("bias")) {
        item.value().zero_();
      } else {
        nn::init::normal_(item.value(), 0, 0.02);
      }
    }
  }

  std::optional<ImageInput> input_;
  int64_t multiple_;  ///< Heights and widths must be multiples of this number of pixels.
  LastTanh tanh_;
  std::shared_ptr<UnetBlock> initial_down_;
  std::vector<std::shared_ptr<UnetBlock>> downs_;
  std::shared_ptr<UnetBlock> bottleneck_;
  std::vector<std::shared_ptr<UnetBlock>> ups_;
  std::shared_ptr<UnetBlock> final_up_;
};

STEPOP_REGISTER_MODEL(
    UnetGenerator,
    {"The generator of pix2pix: an image to an image of the same size, with skips."});

}  // namespace
}  // namespace stepop
