#include "models/unet_diffusion/blocks.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>
#include <torch/nn/init.h>

#include <cmath>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::unet_diffusion {
namespace {

namespace nn = torch::nn;

/// Adds a module that only groups others under a name.
std::shared_ptr<nn::Module> add_group(nn::Module& parent, const char* name) {
  return parent.register_module(name, std::make_shared<nn::Module>());
}

int64_t factor_of(int64_t dims) { return dims == 1 ? 4 : 2; }
int64_t kernel_of(int64_t dims) { return dims == 1 ? 5 : 3; }

}  // namespace

Convolution::Convolution(int64_t dims, int64_t in, int64_t out, int64_t kernel, int64_t stride)
    : dims_(dims), stride_(stride), padding_(kernel / 2) {
  std::vector<int64_t> shape(static_cast<size_t>(dims) + 2, kernel);
  shape[0] = out;
  shape[1] = in;
  weight_ = register_parameter("weight", at::empty(shape));
  bias_ = register_parameter("bias", at::empty({out}));
  // The initialization of torch.nn.Conv2d.
  const at::NoGradGuard no_grad;
  nn::init::kaiming_uniform_(weight_, std::sqrt(5.0));
  const double limit = 1 / std::sqrt(static_cast<double>(weight_[0].numel()));
  bias_.uniform_(-limit, limit);
}

at::Tensor Convolution::apply(const at::Tensor& x) const {
  const at::IntArrayRef stride(stride_);
  const at::IntArrayRef padding(padding_);
  return dims_ == 1 ? at::conv1d(x, weight_, bias_, stride, padding)
                    : at::conv2d(x, weight_, bias_, stride, padding);
}

void Convolution::zero() const {
  const at::NoGradGuard no_grad;
  weight_.zero_();
  bias_.zero_();
}

nn::GroupNorm normalization(int64_t channels) {
  int64_t groups = channels <= 16 ? 8 : channels <= 64 ? 16 : 32;
  while (channels % groups != 0) groups /= 2;
  return nn::GroupNorm(nn::GroupNormOptions(groups, channels));
}

Upsample::Upsample(int64_t channels, bool has_convolution, int64_t dims) : dims_(dims) {
  if (!has_convolution) return;
  convolution_ = register_module(
      "conv", std::make_shared<Convolution>(dims, channels, channels, kernel_of(dims)));
}

at::Tensor Upsample::forward(const at::Tensor& x, const at::Tensor&) {
  const int64_t factor = factor_of(dims_);
  const at::Tensor larger =
      dims_ == 1 ? at::upsample_nearest1d(x, {x.size(2) * factor})
                 : at::upsample_nearest2d(x, {x.size(2) * factor, x.size(3) * factor});
  return convolution_ ? convolution_->apply(larger) : larger;
}

Downsample::Downsample(int64_t channels, bool has_convolution, int64_t dims) : dims_(dims) {
  if (!has_convolution) return;
  convolution_ = register_module(
      "op",
      std::make_shared<Convolution>(dims, channels, channels, kernel_of(dims), factor_of(dims)));
}

at::Tensor Downsample::forward(const at::Tensor& x, const at::Tensor&) {
  if (convolution_) return convolution_->apply(x);
  const int64_t factor = factor_of(dims_);
  return dims_ == 1 ? at::avg_pool1d(x, {factor}, {factor})
                    : at::avg_pool2d(x, {factor, factor}, {factor, factor});
}

ResBlock::ResBlock(const ResBlockOptions& options)
    : dropout_(options.dropout), scales_(options.use_scale_shift_norm) {
  const int64_t dims = options.dims;
  const auto in = add_group(*this, "in_layers");
  in_norm_ = in->register_module("0", normalization(options.in));
  in_convolution_ =
      in->register_module("2", std::make_shared<Convolution>(dims, options.in, options.out, 3));
  if (options.resize == Resize::kUp) resize_ = std::make_shared<Upsample>(options.in, false, dims);
  if (options.resize == Resize::kDown) {
    resize_ = std::make_shared<Downsample>(options.in, false, dims);
  }
  const auto embedding = add_group(*this, "emb_layers");
  of_embedding_ = embedding->register_module(
      "1", nn::Linear(options.embedding, scales_ ? 2 * options.out : options.out));
  const auto out = add_group(*this, "out_layers");
  out_norm_ = out->register_module("0", normalization(options.out));
  out_convolution_ =
      out->register_module("3", std::make_shared<Convolution>(dims, options.out, options.out, 3));
  out_convolution_->zero();
  if (options.in != options.out) {
    skip_ = register_module("skip_connection",
                            std::make_shared<Convolution>(dims, options.in, options.out, 1));
  }
}

at::Tensor ResBlock::forward(const at::Tensor& x, const at::Tensor& embedding) {
  at::Tensor h = at::silu(in_norm_->forward(x));
  at::Tensor skipped = x;
  if (resize_) {
    h = resize_->forward(h, embedding);
    skipped = resize_->forward(x, embedding);
  }
  h = in_convolution_->apply(h);
  at::Tensor added = of_embedding_->forward(at::silu(embedding));
  while (added.dim() < h.dim()) added = added.unsqueeze(-1);
  if (scales_) {
    const auto parts = added.chunk(2, 1);
    h = out_norm_->forward(h) * (1 + parts[0]) + parts[1];
  } else {
    h = out_norm_->forward(h + added);
  }
  h = out_convolution_->apply(at::dropout(at::silu(h), dropout_, is_training()));
  return (skip_ ? skip_->apply(skipped) : skipped) + h;
}

AttentionBlock::AttentionBlock(int64_t channels, int64_t heads, bool in_new_order)
    : heads_(heads), in_new_order_(in_new_order) {
  if (channels % heads != 0) {
    throw Error(fmt::format("attention over {} channels cannot have {} heads", channels, heads));
  }
  norm_ = register_module("norm", normalization(channels));
  qkv_ = register_module("qkv", std::make_shared<Convolution>(1, channels, channels * 3, 1));
  out_ = register_module("proj_out", std::make_shared<Convolution>(1, channels, channels, 1));
  out_->zero();
}

at::Tensor AttentionBlock::forward(const at::Tensor& input, const at::Tensor&) {
  const at::Tensor x = input.flatten(2);  // [B, C, L]
  const int64_t batch = x.size(0);
  const int64_t channels = x.size(1) / heads_;
  const at::Tensor qkv = qkv_->apply(norm_->forward(x));
  // Each [B heads, channels, L].
  const auto parts =
      in_new_order_ ? qkv.chunk(3, 1) : qkv.reshape({batch * heads_, 3 * channels, -1}).chunk(3, 1);
  const auto part = [&](size_t i) { return parts[i].reshape({batch * heads_, channels, -1}); };
  const double scale = 1 / std::sqrt(std::sqrt(static_cast<double>(channels)));
  const at::Tensor weights =
      at::softmax(at::bmm((part(0) * scale).transpose(1, 2), part(1) * scale), -1);
  const at::Tensor attended =
      at::bmm(part(2), weights.transpose(1, 2)).reshape({batch, -1, x.size(2)});
  return (x + out_->apply(attended)).reshape(input.sizes());
}

void Sequence::add(std::shared_ptr<Layer> layer) {
  layers_.push_back(register_module(std::to_string(layers_.size()), std::move(layer)));
}

at::Tensor Sequence::forward(const at::Tensor& x, const at::Tensor& embedding) {
  at::Tensor h = x;
  for (const auto& layer : layers_) h = layer->forward(h, embedding);
  return h;
}

at::Tensor timestep_embedding(const at::Tensor& timesteps, int64_t size) {
  if (timesteps.dim() != 1) {
    throw Error(fmt::format(
        "expected timesteps [B], found {}: this network has one for each example, not for each "
        "element, as causal_mode makes them",
        describe_tensor(timesteps)));
  }
  constexpr double kLongest = 10000;
  const int64_t half = size / 2;
  const at::Tensor exponents =
      at::arange(half, at::TensorOptions(at::kFloat).device(timesteps.device()));
  const at::Tensor frequencies =
      (-std::log(kLongest) * exponents / static_cast<double>(half)).exp();
  const at::Tensor angles = timesteps.to(at::kFloat).unsqueeze(1) * frequencies.unsqueeze(0);
  const at::Tensor embedding = at::cat({angles.cos(), angles.sin()}, 1);
  return size % 2 == 0 ? embedding : at::constant_pad_nd(embedding, {0, 1});
}

}  // namespace stepop::unet_diffusion
