#pragma once

#include "models/vunet/blocks.h"
#include "runtime/base/ordered_map.h"

namespace stepop::vunet {

/// What an encoder keeps: `s<i>_<1|2>`, the output of each residual block of stage i,
/// [B, nf, W / 2^(i-1), W / 2^(i-1)].
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

}  // namespace stepop::vunet
