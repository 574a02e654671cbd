#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"

namespace stepop {

namespace autoencoder_kl {
class Stack;
}

/// An autoencoder with normally distributed latents (Kingma and Welling, 2014) and residual
/// convolutions, as in the first stage of latent diffusion (Rombach et al., 2022).
class AutoencoderKL : public torch::nn::Module {
 public:
  struct Params {
    std::array<int64_t, 2> image_size = {32, 32};
    int64_t channels = 3;
    int64_t latent_channels = 4;
    int64_t base_channels = 32;
    std::vector<int64_t> channel_mult = {1, 2};

    void declare(Parameters& p);
  };

  /// `config` is the model's part of the config. Throws UsageError for sizes that do not fit.
  AutoencoderKL(const Params& params, const Config& config);

  /// The distribution of the latents; each tensor is [B, latent_channels, h, w].
  struct Posterior {
    at::Tensor mean;
    at::Tensor log_variance;  ///< Within [-30, 20].

    /// Draws from the default generator.
    at::Tensor sample() const;
    /// The divergence from N(0, I) in nats, summed over each example: [B].
    at::Tensor kl() const;
  };

  /// Images [B, channels, H, W]. Throws Error for other shapes.
  Posterior encode(const at::Tensor& images);
  /// Latents to images.
  at::Tensor decode(const at::Tensor& latents);

  /// The shape of one example: [latent_channels, h, w].
  std::vector<int64_t> latent_shape() const;

 private:
  int64_t channels_;
  int64_t height_;
  int64_t width_;
  int64_t latent_channels_;
  int64_t factor_ = 1;  ///< How much smaller the latents' sides are.
  std::shared_ptr<autoencoder_kl::Stack> encoder_;
  std::shared_ptr<autoencoder_kl::Stack> decoder_;
};

}  // namespace stepop
