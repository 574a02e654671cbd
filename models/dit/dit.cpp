#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/network.h"

namespace stepop::dit {
namespace {

namespace nn = torch::nn;

constexpr int64_t kFrequencies = 256;  // in the embedding of timesteps
constexpr double kEpsilon = 1e-6;      // for layer normalization

/// Layer normalization without parameters: scale and shift come from the conditions.
at::Tensor normalized(const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, {}, {}, kEpsilon);
}

/// `x` is [B, T, D], the others [B, D].
at::Tensor modulated(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  return normalized(x) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1);
}

/// The cosines and sines of each number [N] at `size` / 2 frequencies: [N, size].
at::Tensor waves(const at::Tensor& numbers, int64_t size, bool cosine_first) {
  const int64_t half = size / 2;
  const at::Tensor powers =
      at::arange(half, numbers.options().dtype(at::kDouble)) / static_cast<double>(half);
  const at::Tensor frequencies = (powers * -std::log(10000.0)).exp();
  const at::Tensor angles = at::outer(numbers.to(at::kDouble), frequencies);
  const at::Tensor parts = cosine_first ? at::cat({angles.cos(), angles.sin()}, 1)
                                        : at::cat({angles.sin(), angles.cos()}, 1);
  return parts.to(at::kFloat);
}

/// The embedding of each patch's position: half of the numbers encode the column, half the row. [1,
/// rows * columns, D]
at::Tensor places(int64_t rows, int64_t columns, int64_t width) {
  const at::Tensor of_column = waves(at::arange(columns), width / 2, /*cosine_first=*/false);
  const at::Tensor of_row = waves(at::arange(rows), width / 2, /*cosine_first=*/false);
  return at::cat({of_column.repeat({rows, 1}), of_row.repeat_interleave(columns, 0)}, 1)
      .unsqueeze(0);
}

/// A linear layer initialized to zero, so that each block changes nothing at first.
nn::Linear zero_linear(int64_t in, int64_t out) {
  nn::Linear layer(in, out);
  nn::init::zeros_(layer->weight);
  nn::init::zeros_(layer->bias);
  return layer;
}

nn::Linear linear(int64_t in, int64_t out) {
  nn::Linear layer(in, out);
  nn::init::xavier_uniform_(layer->weight);
  nn::init::zeros_(layer->bias);
  return layer;
}

/// Attention and a perceptron, each with shift, scale and gate from the conditions (adaLN-Zero).
class Block : public nn::Module {
 public:
  Block(int64_t width, int64_t heads, int64_t hidden) : heads_(heads) {
    const auto attention = register_module("attn", std::make_shared<nn::Module>());
    qkv_ = attention->register_module("qkv", linear(width, 3 * width));
    projection_ = attention->register_module("proj", linear(width, width));
    const auto perceptron = register_module("mlp", std::make_shared<nn::Module>());
    first_ = perceptron->register_module("fc1", linear(width, hidden));
    second_ = perceptron->register_module("fc2", linear(hidden, width));
    const auto conditions = register_module("adaLN_modulation", std::make_shared<nn::Module>());
    conditions_ = conditions->register_module("1", zero_linear(width, 6 * width));
  }

  /// x [B, T, D], conditions [B, D]
  at::Tensor forward(const at::Tensor& x, const at::Tensor& conditions) {
    const auto parts = conditions_->forward(at::silu(conditions)).chunk(6, 1);
    const at::Tensor seen = x + parts[2].unsqueeze(1) * attention(modulated(x, parts[0], parts[1]));
    const at::Tensor hidden =
        at::gelu(first_->forward(modulated(seen, parts[3], parts[4])), "tanh");
    return seen + parts[5].unsqueeze(1) * second_->forward(hidden);
  }

 private:
  at::Tensor attention(const at::Tensor& x) {
    const int64_t batch = x.size(0);
    const int64_t tokens = x.size(1);
    const int64_t width = x.size(2);
    const auto qkv = qkv_->forward(x)
                         .reshape({batch, tokens, 3, heads_, width / heads_})
                         .permute({2, 0, 3, 1, 4})
                         .unbind(0);  // [B, heads, T, D / heads] each
    const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
    return projection_->forward(mixed.transpose(1, 2).reshape({batch, tokens, width}));
  }

  int64_t heads_;
  nn::Linear qkv_{nullptr}, projection_{nullptr};
  nn::Linear first_{nullptr}, second_{nullptr};
  nn::Linear conditions_{nullptr};
};

/// A diffusion transformer (Peebles and Xie, 2023): x [B, channels, H, W], timesteps [B] from 0 to
/// 1000, and with `num_classes` the classes y [B], to [B, out_channels, H, W]. The class
/// `num_classes` means no class. Parameters have the names of facebookresearch/DiT.
class DiT : public MultiNetwork {
 public:
  struct Params {
    std::array<int64_t, 2> image_size = {32, 32};
    int64_t channels = 3;
    int64_t out_channels = 3;
    int64_t patch_size = 2;
    int64_t hidden_size = 384;
    int64_t depth = 12;
    int64_t num_heads = 6;
    double mlp_ratio = 4;
    int64_t num_classes = 0;

    void declare(Parameters& p) {
      p.add("image_size", image_size, "height and width", at_least(1));
      p.add("channels", channels, "of the images", at_least(1));
      out_channels = channels;
      p.add("out_channels", out_channels, "of what comes out, by default as many", at_least(1));
      p.add("patch_size", patch_size, "pixels of a side of what becomes one token", at_least(1));
      p.add("hidden_size", hidden_size, "numbers in a token", at_least(4));
      p.add("depth", depth, "blocks", at_least(1));
      p.add("num_heads", num_heads, "of the attention", at_least(1));
      p.add("mlp_ratio", mlp_ratio, "how much wider the hidden layers are", above(0));
      p.add("num_classes", num_classes, "0: without; this number as a class means none",
            at_least(0));
    }
  };

  DiT(const Params& params, const Config& config)
      : channels_(params.channels),
        out_channels_(params.out_channels),
        patch_(params.patch_size),
        classes_(params.num_classes) {
    set_size(params.image_size, config);
    const int64_t width = params.hidden_size;
    const int64_t heads = params.num_heads;
    const auto hidden = static_cast<int64_t>(static_cast<double>(width) * params.mlp_ratio);
    if (width % 4 != 0 || width % heads != 0) {
      throw config.error("hidden_size",
                         fmt::format("expected a multiple of 4 and of num_heads, {}", heads));
    }
    if (hidden < 1) throw config.error("mlp_ratio", "expected at least 1 / hidden_size");
    const auto patches = register_module("x_embedder", std::make_shared<nn::Module>());
    patches_ = patches->register_module(
        "proj", nn::Conv2d(nn::Conv2dOptions(channels_, width, patch_).stride(patch_)));
    nn::init::xavier_uniform_(patches_->weight.view({width, -1}));
    nn::init::zeros_(patches_->bias);
    const auto times = register_module("t_embedder", std::make_shared<nn::Module>());
    const auto perceptron = times->register_module("mlp", std::make_shared<nn::Module>());
    time_first_ = perceptron->register_module("0", linear(kFrequencies, width));
    time_second_ = perceptron->register_module("2", linear(width, width));
    nn::init::normal_(time_first_->weight, 0, 0.02);
    nn::init::normal_(time_second_->weight, 0, 0.02);
    if (classes_ > 0) {
      const auto labels = register_module("y_embedder", std::make_shared<nn::Module>());
      labels_ = labels->register_module("embedding_table", nn::Embedding(classes_ + 1, width));
      nn::init::normal_(labels_->weight, 0, 0.02);
    }
    places_ = register_buffer("pos_embed", places(rows_, columns_, width));
    const auto blocks = register_module("blocks", std::make_shared<nn::Module>());
    for (int64_t i = 0; i < params.depth; ++i) {
      blocks_.push_back(blocks->register_module(std::to_string(i),
                                                std::make_shared<Block>(width, heads, hidden)));
    }
    const auto last = register_module("final_layer", std::make_shared<nn::Module>());
    last_ = last->register_module("linear", zero_linear(width, patch_ * patch_ * out_channels_));
    const auto conditions =
        last->register_module("adaLN_modulation", std::make_shared<nn::Module>());
    conditions_ = conditions->register_module("1", zero_linear(width, 2 * width));
  }

  std::vector<std::string> input_names() const override { return {"x", "timesteps", "y"}; }

  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    const at::Tensor& x = inputs.at(0);
    const at::Tensor y = inputs.size() > 2 ? inputs[2] : at::Tensor();
    check(x, y);
    at::Tensor conditions = time_second_->forward(
        at::silu(time_first_->forward(waves(inputs.at(1), kFrequencies, /*cosine_first=*/true))));
    if (labels_) conditions = conditions + labels_->forward(y);
    at::Tensor tokens = patches_->forward(x).flatten(2).transpose(1, 2) + places_;  // [B, T, D]
    for (const auto& block : blocks_) tokens = checkpointed(*block, tokens, conditions);
    const auto parts = conditions_->forward(at::silu(conditions)).chunk(2, 1);
    return {image_of(last_->forward(modulated(tokens, parts[0], parts[1])))};
  }

 private:
  void set_size(std::array<int64_t, 2> size, const Config& config) {
    if (size[0] % patch_ != 0 || size[1] % patch_ != 0) {
      throw config.error(
          "image_size",
          fmt::format("expected [height, width], multiples of patch_size, {}", patch_));
    }
    rows_ = size[0] / patch_;
    columns_ = size[1] / patch_;
  }

  void check(const at::Tensor& x, const at::Tensor& y) const {
    const bool fits = x.dim() == 4 && x.size(1) == channels_ && x.size(2) == rows_ * patch_ &&
                      x.size(3) == columns_ * patch_;
    if (!fits) {
      throw Error(fmt::format("DiT: expected images [B, {}, {}, {}], found {}", channels_,
                              rows_ * patch_, columns_ * patch_, describe_tensor(x)));
    }
    if (y.defined() != (classes_ > 0)) {
      throw Error(classes_ > 0 ? "DiT: with num_classes the classes y are needed"
                               : "DiT: classes are given, but num_classes is 0");
    }
  }

  /// Arranges patches [B, T, patch * patch * C] as images [B, C, H, W].
  at::Tensor image_of(const at::Tensor& tokens) const {
    return tokens.reshape({tokens.size(0), rows_, columns_, patch_, patch_, out_channels_})
        .permute({0, 5, 1, 3, 2, 4})
        .reshape({tokens.size(0), out_channels_, rows_ * patch_, columns_ * patch_});
  }

  int64_t channels_;
  int64_t out_channels_;
  int64_t patch_;
  int64_t classes_;
  int64_t rows_ = 0;  ///< The number of rows of patches.
  int64_t columns_ = 0;
  nn::Conv2d patches_{nullptr};
  nn::Linear time_first_{nullptr}, time_second_{nullptr};
  nn::Embedding labels_{nullptr};
  at::Tensor places_;
  std::vector<std::shared_ptr<Block>> blocks_;
  nn::Linear last_{nullptr};
  nn::Linear conditions_{nullptr};
};

STEPOP_REGISTER_MODEL(DiT, {"A diffusion transformer: images, timesteps, classes to images."});

}  // namespace
}  // namespace stepop::dit
