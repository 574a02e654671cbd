#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "iterators/losses/loss_weights.h"
#include "iterators/losses/perceptual.h"
#include "models/vunet/vunet.h"

namespace stepop::vunet {

/// What the network made of a batch.
struct Prediction {
  at::Tensor image;  ///< [B, 3, H, W]
  Latents q_means;
  Latents p_means;
};

struct Losses {
  OrderedMap<at::Tensor> instances;  ///< By name, [B] each; `total` is the last.
  OrderedMap<at::Tensor> batch;      ///< Their means.
};

/// The losses that the config's `losses` name: color_L1, color_L2, color_chroma,
/// color_gradient, KL, perceptual.
class Criterion {
 public:
  /// Throws UsageError as LossWeights and PerceptualLoss do.
  Criterion(const Config& losses, const c10::Device& device);

  /// With the weights of a step. A new loss is a line here, and its name one in the constructor.
  Losses operator()(const Prediction& prediction, const at::Tensor& target, int64_t step) const;

 private:
  losses::LossWeights weights_;
  std::optional<losses::PerceptualLoss> perceptual_;
};

}  // namespace stepop::vunet
