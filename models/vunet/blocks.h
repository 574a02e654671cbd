#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace stepop::vunet {

/// The settings that all parts of a VUNet share.
struct Options {
  int64_t stages = 0;    ///< S: stage i has the images' width / 2^(i - 1), stage S the width 1.
  int64_t nf_start = 0;  ///< The channels of stage 1.
  int64_t nf_max = 0;    ///< The channels of all other stages.
  double dropout = 0;    ///< The dropout probability in residual blocks.
  bool normalized_convolutions = false;
};

/// A convolution with padding of half its kernel: [B, in, H, W] to [B, out, H / stride, W /
/// stride].
class Conv : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) const = 0;
};

/// A plain Conv2d with `weight` and `bias`; or a normalized one: gamma (conv(x)) + beta, where the
/// weights of `conv` are weight_g weight_v / |weight_v| by output channel (Salimans and Kingma,
/// 2016), with `conv.weight_g`, `conv.weight_v`, `conv.bias`, `gamma` and `beta` [1, out, 1, 1].
/// Initialised as PyTorch's Conv2d, gamma with 1 and beta with 0.
std::shared_ptr<Conv> make_conv(const Options& options, int64_t in, int64_t out, int64_t kernel = 1,
                                int64_t stride = 1);

/// x + conv2d(dropout(elu(x))) of [B, C, H, W]; with a skip a of the same shape
/// x + conv2d(dropout(elu(cat[x, pre(a)]))).
class ResBlock : public torch::nn::Module {
 public:
  ResBlock(const Options& options, int64_t channels, bool has_skip);

  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& skip) const;

 private:
  at::Tensor added(const at::Tensor& x, const at::Tensor& activated) const;

  double dropout_;
  std::shared_ptr<Conv> conv2d_;
  std::shared_ptr<Conv> pre_;  ///< Null without a skip.
};

/// Halves height and width by a convolution of stride 2.
class Down : public torch::nn::Module {
 public:
  Down(const Options& options, int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& x) const { return down_->forward(x); }

 private:
  std::shared_ptr<Conv> down_;
};

/// Doubles height and width by a convolution to four times the channels and depth-to-space.
class Up : public torch::nn::Module {
 public:
  Up(const Options& options, int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  std::shared_ptr<Conv> up_;
};

/// Blocks of 2 x 2 pixels become channels: [B, C, 2 H, 2 W] to [B, 4 C, H, W], where channel
/// (2 y + x) C + c is channel c of the pixel (y, x) of each block.
at::Tensor space_to_depth(const at::Tensor& x);

/// The inverse: [B, 4 C, H, W] to [B, C, 2 H, 2 W].
at::Tensor depth_to_space(const at::Tensor& x);

/// Modules of one type by name; checkpoints name them as torch.nn.ModuleDict does.
template <class T>
class Modules : public torch::nn::Module {
 public:
  void add(const std::string& name, std::shared_ptr<T> module) {
    modules_.emplace(name, this->register_module(name, std::move(module)));
  }
  T& operator[](const std::string& name) const { return *modules_.at(name); }

 private:
  std::map<std::string, std::shared_ptr<T>> modules_;
};

/// `s3` and `s3_2`: the names of a stage, and of a residual block in it.
std::string stage_name(int64_t stage);
std::string block_name(int64_t stage, int64_t block);

}  // namespace stepop::vunet
