#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "runtime/core/measure/profile.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// Sums the gradients of parameters over the processes of a world, which has several. Parameters
/// are in the same order in all processes.
///
/// A gradient that some processes have and others lack is summed as if those had zeros; one that
/// none has stays undefined.
class GradientSum {
 public:
  /// `parameters` that require no gradient at a step are left out of it.
  GradientSum(World& world, std::vector<at::Tensor> parameters);
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  /// Whether there is something to overlap: gradients that travel in more than one message.
  bool overlaps() const;

  /// Runs `backward`, the only one of an update, from `loss`: c10d's Reducer sums the gradients of
  /// the last layers while those of the first are still computed, and the gradients are the sums
  /// when it is over. A profile (or null) is told how long the sums took, and which part of it was
  /// waited for.
  void overlap(const at::Tensor& loss, const std::function<void()>& backward,
               Profile* profile = nullptr);

  /// Sums what the gradients are now: after several backwards, or when nothing overlaps.
  void sum();

 private:
  class Overlapped;

  void sum(at::TensorList parameters);

  World& world_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<Overlapped> overlapped_;
};

}  // namespace stepop
