#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stepop::unet_diffusion {

/// A part of the UNet: features [B, C, ...] and the embedding of the timesteps [B, E] to features.
class Layer : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x, const at::Tensor& embedding) = 0;
};

/// A convolution over one or two dimensions that keeps their size, except for the stride.
class Convolution : public Layer {
 public:
  Convolution(int64_t dims, int64_t in, int64_t out, int64_t kernel, int64_t stride = 1);
  at::Tensor apply(const at::Tensor& x) const;
  at::Tensor forward(const at::Tensor& x, const at::Tensor&) override { return apply(x); }
  void zero() const;

 private:
  int64_t dims_;
  int64_t stride_;
  int64_t padding_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Group normalization; the number of groups depends on the channels, which must be a multiple of
/// 4.
torch::nn::GroupNorm normalization(int64_t channels);

/// Doubles the size; for sequences, makes them four times as long.
class Upsample : public Layer {
 public:
  Upsample(int64_t channels, bool has_convolution, int64_t dims);
  at::Tensor forward(const at::Tensor& x, const at::Tensor&) override;

 private:
  int64_t dims_;
  std::shared_ptr<Convolution> convolution_;  ///< May be null.
};

/// Halves the size; for sequences, makes them a quarter as long.
class Downsample : public Layer {
 public:
  Downsample(int64_t channels, bool has_convolution, int64_t dims);
  at::Tensor forward(const at::Tensor& x, const at::Tensor&) override;

 private:
  int64_t dims_;
  std::shared_ptr<Convolution> convolution_;  ///< If null, the layer averages.
};

enum class Resize { kNone, kUp, kDown };

struct ResBlockOptions {
  int64_t in = 0;
  int64_t out = 0;
  int64_t embedding = 0;
  double dropout = 0;
  int64_t dims = 2;
  bool use_scale_shift_norm = false;  ///< The embedding scales and shifts the features; otherwise
                                      ///< it is added.
  Resize resize = Resize::kNone;
};

class ResBlock : public Layer {
 public:
  explicit ResBlock(const ResBlockOptions& options);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& embedding) override;

 private:
  double dropout_;
  bool scales_;
  torch::nn::GroupNorm in_norm_{nullptr};
  std::shared_ptr<Convolution> in_convolution_;
  torch::nn::Linear of_embedding_{nullptr};
  torch::nn::GroupNorm out_norm_{nullptr};
  std::shared_ptr<Convolution> out_convolution_;
  std::shared_ptr<Convolution> skip_;  ///< If null, the skip is x itself.
  std::shared_ptr<Layer> resize_;      ///< If null, the size does not change.
};

/// Every position attends to all positions.
class AttentionBlock : public Layer {
 public:
  /// Throws Error when the heads do not divide the channels. With `in_new_order`, the channels are
  /// queries, keys and values, each with all heads; otherwise the channels are heads, each with
  /// queries, keys and values.
  AttentionBlock(int64_t channels, int64_t heads, bool in_new_order);
  at::Tensor forward(const at::Tensor& x, const at::Tensor&) override;

 private:
  int64_t heads_;
  bool in_new_order_;
  torch::nn::GroupNorm norm_{nullptr};
  std::shared_ptr<Convolution> qkv_;
  std::shared_ptr<Convolution> out_;
};

/// Layers one after another, named 0, 1, ....
class Sequence : public Layer {
 public:
  void add(std::shared_ptr<Layer> layer);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& embedding) override;

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

/// Sines and cosines of the timesteps [B], of `size` frequencies together: [B, size], float32.
at::Tensor timestep_embedding(const at::Tensor& timesteps, int64_t size);

}  // namespace stepop::unet_diffusion
