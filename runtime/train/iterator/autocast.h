#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace stepop {

class Config;

/// In what networks compute; their weights, gradients and optimizers are float32 in either.
enum class Precision {
  kFloat32,
  /// LibTorch's autocast: convolutions and products of matrices take and give bfloat16, what would
  /// suffer from it stays float32 (torch.autocast).
  kBfloat16,
};

/// `precision: float32 | bfloat16`, by default the first.
Precision read_precision(const Config& config);

/// While it lives, this thread computes in that precision on devices of that kind; with kFloat32 it
/// does nothing. Weights are converted at each use: a copy that is kept, as torch.autocast has it,
/// would outlive an update in the same op.
class AutocastGuard {
 public:
  AutocastGuard(Precision precision, const c10::Device& device);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  bool is_on_;
  c10::DeviceType device_;
  bool was_on_ = false;
  bool was_cached_ = true;
  c10::ScalarType type_before_ = c10::ScalarType::Float;
};

}  // namespace stepop
