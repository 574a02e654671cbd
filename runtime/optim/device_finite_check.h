#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace stepop {

/// Keeps, on a GPU, whether losses and gradients are finite: nothing but `read` waits for it.
class DeviceFiniteCheck {
 public:
  /// `is_sticky`: after an update that must not happen, no other one happens.
  explicit DeviceFiniteCheck(bool is_sticky) : is_sticky_(is_sticky) {}

  /// A loss of the next update.
  void add_loss(const at::Tensor& loss) { losses_.push_back(loss.detach()); }

  /// Looks at `tensors`, of which there is at least one, and at the losses. To be called once an
  /// update. Returns what the fused kernels take as `found_inf`, on the device of the first tensor:
  /// float32 [], 1 when the update must not happen, else 0. It is overwritten by the next call.
  const at::Tensor& check(const std::vector<at::Tensor>& tensors, int64_t global_step);

  struct Reading {
    int64_t left_out = 0;     ///< Updates that did not happen since the last `reset`.
    int64_t first_step = -1;  ///< Training steps that were complete at the first of them.
  };
  /// Waits for the device.
  Reading read() const;

  /// Counts from 0 again; a sticky flag stays set.
  void reset();

 private:
  void begin(const at::Device& device);

  bool is_sticky_;
  std::vector<at::Tensor> losses_;
  at::Tensor found_;       ///< float32 [].
  at::Tensor one_;         ///< float32 [].
  at::Tensor left_out_;    ///< float64 [].
  at::Tensor first_step_;  ///< float64 [], infinite for none.
};

}  // namespace stepop
