#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace stepop {

class Config;

/// The type in which networks compute; weights, gradients and optimizers are always float32.
enum class Precision {
  kFloat32,
  /// LibTorch's autocast: convolutions and matrix products take and return bfloat16; operations
  /// that would lose accuracy stay in float32 (torch.autocast).
  kBfloat16,
  /// The same with float16, whose numbers end at 65504: losses are scaled (optim/loss_scale.h).
  kFloat16,
};

/// Reads `precision: float32 | bfloat16 | float16`; the default is float32.
Precision read_precision(const Config& config);

/// During its lifetime, this thread computes in that precision on devices of that kind; kFloat32
/// within another precision is for a part of a network that needs it, whose inputs are then
/// converted by hand: `x.to(torch::kFloat)`. Weights are converted at each use: a stored copy, as
/// in torch.autocast, would be outdated after an update in the same op.
class AutocastGuard {
 public:
  AutocastGuard(Precision precision, const c10::Device& device);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool was_on_;
  bool changes_;
  bool was_cached_ = true;
  c10::ScalarType type_before_ = c10::ScalarType::Float;
};

}  // namespace stepop
