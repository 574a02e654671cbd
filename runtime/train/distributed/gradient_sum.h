#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "runtime/core/measure/profile.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// Sums the gradients of parameters over the processes of a world, which has several processes.
/// Parameters have the same order in all processes.
///
/// A gradient that some processes lack counts as zeros there; a gradient that all processes lack
/// stays undefined.
class GradientSum {
 public:
  /// Parameters that require no gradient at a step are left out of its sum.
  GradientSum(World& world, std::vector<at::Tensor> parameters);
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  /// Whether sums can overlap with the backward: the gradients need more than one message.
  bool overlaps() const;

  /// Runs `backward`, the only backward of an update, from `loss`. c10d's Reducer sums the
  /// gradients of the last layers while those of the first layers are still being computed;
  /// afterwards the gradients are the sums. A profile (or null) records how long the sums took, and
  /// how much of this time was spent waiting.
  void overlap(const at::Tensor& loss, const std::function<void()>& backward,
               Profile* profile = nullptr);

  /// Sums the current gradients: after several backwards, or when nothing overlaps. `beside`,
  /// float64 [n] or undefined, is summed along, with the precision of float32 at least.
  void sum(const at::Tensor& beside = {});

 private:
  class Overlapped;

  void sum(at::TensorList parameters, const at::Tensor& beside);

  [[maybe_unused]] World& world_;  // unused without Gloo
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<Overlapped> overlapped_;
};

}  // namespace stepop
