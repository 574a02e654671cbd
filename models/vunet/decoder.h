#pragma once

#include "models/vunet/encoder.h"

namespace stepop::vunet {

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
