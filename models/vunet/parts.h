#pragma once

#include <array>

#include "models/vunet/blocks.h"
#include "runtime/core/base/ordered_map.h"

namespace stepop::vunet {

/// The outputs of an encoder: `s<i>_<1|2>`, the output of each residual block of stage i, [B, nf, W
/// / 2^(i-1), W / 2^(i-1)].
using Features = OrderedMap<at::Tensor>;

/// `e_theta` on the pose, `f_phi` on the appearance: two residual blocks a stage, a halving between
/// stages.
class Encoder : public torch::nn::Module {
 public:
  Encoder(const Options& options, int64_t image_channels);

  /// `images` is [B, image_channels, W, W] with W = 2^(S - 1).
  Features forward(const at::Tensor& images) const;

 private:
  int64_t stages_;
  std::shared_ptr<Conv> in_op_;
  std::shared_ptr<Modules<ResBlock>> blocks_;
  std::shared_ptr<Modules<Down>> downs_;
};

/// A tensor for each of the two stochastic stages, under their names: the last stage, `s<S>`, [B,
/// nf_max, 1, 1]; and the stage before it, `s<S-1>`, of width 2, as [B, 4 nf_max, 1, 1], where each
/// of its four pixels is a group of nf_max channels.
using Latents = OrderedMap<at::Tensor>;

/// m + N(0, I).
at::Tensor sample_around(const at::Tensor& mean);

/// `zc`: the posterior of the latents, given the features of the appearance.
class ZConverter : public torch::nn::Module {
 public:
  explicit ZConverter(const Options& options);

  struct Posterior {
    Latents means;
    Latents z;  ///< Samples, or the means if nothing is drawn.
  };
  /// With `samples` false nothing is drawn: the means replace the samples.
  Posterior forward(const Features& appearance, bool samples) const;

 private:
  int64_t stages_;
  std::shared_ptr<Conv> conv1x1_;
  std::shared_ptr<Modules<ResBlock>> blocks_;
  std::shared_ptr<Up> up_;
  std::shared_ptr<Conv> channel_norm_;
};

/// `bottleneck`: the prior of the latents, given the features of the pose, autoregressive over the
/// four groups of the stage of width 2; and the features of that stage, made with latents of the
/// posterior or of the prior.
class Bottleneck : public torch::nn::Module {
 public:
  explicit Bottleneck(const Options& options);

  struct Output {
    at::Tensor features;  ///< [B, nf_max, 2, 2]
    Latents means;
  };
  /// `z` is the posterior's; null draws from the prior.
  Output forward(const Features& pose, const Latents* z) const;

 private:
  struct Stage {
    at::Tensor mean;
    at::Tensor z;  ///< The drawn latents; undefined when `z` was given.
  };
  Stage groups(const at::Tensor& h, const at::Tensor& z) const;

  static constexpr size_t kGroups = 4;
  int64_t stages_;
  std::shared_ptr<Conv> conv1x1_;
  std::shared_ptr<Up> up_;
  std::shared_ptr<Modules<ResBlock>> blocks_;
  std::shared_ptr<Modules<Conv>> channel_norm_;
  std::array<std::shared_ptr<ResBlock>, kGroups> auto_blocks_;
  std::shared_ptr<Conv> param_converter_;
};

/// `decoder`: doublings, each followed by two residual blocks with the pose's features of the same
/// stage as skips.
class Decoder : public torch::nn::Module {
 public:
  /// `has_tanh` bounds the image to [-1, 1].
  Decoder(const Options& options, int64_t image_channels, bool has_tanh);

  /// `h` is [B, nf_max, 2, 2]; the image [B, image_channels, W, W].
  at::Tensor forward(at::Tensor h, const Features& pose) const;

 private:
  int64_t stages_;
  bool has_tanh_;
  std::shared_ptr<Modules<ResBlock>> blocks_;
  std::shared_ptr<Modules<Up>> ups_;
  std::shared_ptr<Conv> final_layer_;
};

}  // namespace stepop::vunet
