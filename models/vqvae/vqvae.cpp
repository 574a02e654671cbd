#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/image_input.h"
#include "runtime/train/networks/network.h"

namespace stepop::vqvae {
namespace {

namespace nn = torch::nn;

/// A codebook: a vector becomes the nearest of its codes. In training each code moves to the
/// running mean of the vectors that it stands for; gradients pass straight through.
class Quantize : public nn::Module {
 public:
  Quantize(int64_t dim, int64_t codes)
      : embed_(register_buffer("embed", at::randn({dim, codes}))),
        cluster_size_(register_buffer("cluster_size", at::zeros({codes}))),
        embed_avg_(register_buffer("embed_avg", embed_.clone())) {}

  /// [B, dim, H, W] to the codes [B, dim, H, W], and the mean square of what that changes, [].
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& x) {
    const at::Tensor input = x.permute({0, 2, 3, 1});
    const at::Tensor codes =
        nearest(input.detach().reshape({-1, embed_.size(0)})).reshape(input.sizes());
    const at::Tensor difference = (codes - input).square().mean();
    const at::Tensor passed = input + (codes - input).detach();
    return {passed.permute({0, 3, 1, 2}), difference};
  }

 private:
  at::Tensor nearest(const at::Tensor& vectors) {  // [N, dim]
    const bool learns = is_training() && at::GradMode::is_enabled();
    const at::NoGradGuard no_grad;
    const at::Tensor distance = vectors.square().sum(1, /*keepdim=*/true) -
                                2 * at::matmul(vectors, embed_) +
                                embed_.square().sum(0, /*keepdim=*/true);
    const at::Tensor index = distance.argmin(1);
    const at::Tensor codes = embed_.t().index_select(0, index);
    if (learns) learn(vectors, index);
    return codes;
  }

  void learn(const at::Tensor& vectors, const at::Tensor& index) {
    constexpr double kDecay = 0.99;
    constexpr double kEpsilon = 1e-5;
    const int64_t count = cluster_size_.size(0);
    const at::Tensor chosen = at::one_hot(index, count).to(vectors.scalar_type());
    cluster_size_.mul_(kDecay).add_(chosen.sum(0), 1 - kDecay);
    embed_avg_.mul_(kDecay).add_(at::matmul(vectors.t(), chosen), 1 - kDecay);
    const at::Tensor total = cluster_size_.sum();
    const at::Tensor sizes =
        (cluster_size_ + kEpsilon) / (total + static_cast<double>(count) * kEpsilon) * total;
    embed_.copy_(embed_avg_ / sizes.unsqueeze(0));
  }

  at::Tensor embed_, cluster_size_, embed_avg_;
};

/// Its skip connection begins behind the first activation, as in the original.
class Residual : public nn::Module {
 public:
  Residual(int64_t channels, int64_t inner)
      : layers_(register_module(
            "conv",
            nn::Sequential(nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(channels, inner, 3).padding(1)),
                           nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(inner, channels, 1))))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor active = at::relu(x);
    return layers_->forward(active) + active;
  }

 private:
  nn::Sequential layers_;
};

struct Sizes {
  int64_t channels;
  int64_t residuals;
  int64_t inner;  ///< Channels within a residual block.
};

nn::Conv2d halving(int64_t in, int64_t out) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 4).stride(2).padding(1));
}
nn::Conv2d same_size(int64_t in, int64_t out) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
}
nn::ConvTranspose2d doubling(int64_t in, int64_t out) {
  return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(in, out, 4).stride(2).padding(1));
}

class Blocks : public nn::Module {
 public:
  Blocks() : blocks_(register_module("blocks", nn::Sequential())) {}
  at::Tensor forward(const at::Tensor& x) { return blocks_->forward(x); }

 protected:
  void add_residuals(const Sizes& sizes) {
    for (int64_t i = 0; i < sizes.residuals; ++i) {
      blocks_->push_back(std::make_shared<Residual>(sizes.channels, sizes.inner));
    }
    blocks_->push_back(nn::ReLU());
  }

  nn::Sequential blocks_;
};

/// Makes images `stride`, 2 or 4, times smaller.
class Encoder : public Blocks {
 public:
  Encoder(int64_t in, const Sizes& sizes, int stride) {
    const int64_t half = sizes.channels / 2;
    blocks_->push_back(halving(in, half));
    blocks_->push_back(nn::ReLU());
    if (stride == 4) {
      blocks_->push_back(halving(half, sizes.channels));
      blocks_->push_back(nn::ReLU());
    }
    blocks_->push_back(same_size(stride == 4 ? sizes.channels : half, sizes.channels));
    add_residuals(sizes);
  }
};

/// Makes images `stride`, 2 or 4, times larger.
class Decoder : public Blocks {
 public:
  Decoder(int64_t in, int64_t out, const Sizes& sizes, int stride) {
    blocks_->push_back(same_size(in, sizes.channels));
    add_residuals(sizes);
    if (stride == 4) {
      blocks_->push_back(doubling(sizes.channels, sizes.channels / 2));
      blocks_->push_back(nn::ReLU());
    }
    blocks_->push_back(doubling(stride == 4 ? sizes.channels / 2 : sizes.channels, out));
  }
};

/// VQ-VAE 2 (Razavi et al., 2019): images [B, in_channel, H, W], whose sides are multiples of 8, to
/// what two codebooks keep of them, and the codebooks' commitment loss, [1]. Parameters have the
/// names of DL-Art-School and rosinality/vq-vae-2-pytorch.
class VqVae : public MultiNetwork {
 public:
  struct Params {
    int64_t in_channel = 3;
    int64_t channel = 128;
    int64_t n_res_block = 2;
    int64_t n_res_channel = 32;
    int64_t codebook_dim = 64;
    int64_t codebook_size = 512;

    void declare(Parameters& p) {
      p.add("in_channel", in_channel, "channels of the images", at_least(1));
      p.add("channel", channel, "channels within", at_least(2));
      p.add("n_res_block", n_res_block, "residual blocks of each part", at_least(0));
      p.add("n_res_channel", n_res_channel, "channels within them", at_least(1));
      p.add("codebook_dim", codebook_dim, "numbers in a code", at_least(1));
      p.add("codebook_size", codebook_size, "codes in each codebook", at_least(1));
    }
  };

  explicit VqVae(const Config& given) {
    const Config config = given.has("kwargs") ? given.at("kwargs") : given;
    const auto params = read_parameters<Params>(config);
    const int64_t in = params.in_channel;
    const Sizes sizes{
        .channels = params.channel, .residuals = params.n_res_block, .inner = params.n_res_channel};
    const int64_t dim = params.codebook_dim;
    const int64_t codes = params.codebook_size;
    input_.emplace(config, "in_channel", in);
    bottom_ = register_module("enc_b", std::make_shared<Encoder>(in, sizes, 4));
    top_ = register_module("enc_t", std::make_shared<Encoder>(sizes.channels, sizes, 2));
    to_top_ = register_module("quantize_conv_t", nn::Conv2d(sizes.channels, dim, 1));
    top_codes_ = register_module("quantize_t", std::make_shared<Quantize>(dim, codes));
    from_top_ = register_module("dec_t", std::make_shared<Decoder>(dim, dim, sizes, 2));
    to_bottom_ = register_module("quantize_conv_b", nn::Conv2d(dim + sizes.channels, dim, 1));
    bottom_codes_ = register_module("quantize_b", std::make_shared<Quantize>(dim, codes));
    up_ = register_module("upsample_t", doubling(dim, dim));
    decoder_ = register_module("dec", std::make_shared<Decoder>(2 * dim, in, sizes, 4));
  }

  std::vector<std::string> input_names() const override { return {"x"}; }

  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    const at::Tensor& x = inputs.at(0);
    input_->check(x);
    if (x.size(2) % 8 != 0 || x.size(3) % 8 != 0) {
      throw Error(fmt::format("vqvae needs images whose sides are multiples of 8, found {}",
                              describe_tensor(x)));
    }
    const at::Tensor bottom = checkpointed(*bottom_, x);
    const auto [top, top_loss] = top_codes_->forward(to_top_->forward(checkpointed(*top_, bottom)));
    const at::Tensor seen = at::cat({checkpointed(*from_top_, top), bottom}, 1);
    const auto [low, low_loss] = bottom_codes_->forward(to_bottom_->forward(seen));
    const at::Tensor all = at::cat({up_->forward(top), low}, 1);
    return {checkpointed(*decoder_, all), (top_loss + low_loss).unsqueeze(0)};
  }

 private:
  std::optional<ImageInput> input_;
  std::shared_ptr<Encoder> bottom_, top_;
  std::shared_ptr<Decoder> from_top_, decoder_;
  std::shared_ptr<Quantize> top_codes_, bottom_codes_;
  nn::Conv2d to_top_{nullptr}, to_bottom_{nullptr};
  nn::ConvTranspose2d up_{nullptr};
};

STEPOP_REGISTER_MODEL_AS(
    "vqvae", VqVae,
    {"VQ-VAE 2: images to what two codebooks keep of them, and the commitment loss."});

}  // namespace
}  // namespace stepop::vqvae
