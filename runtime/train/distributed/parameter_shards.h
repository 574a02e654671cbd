#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/train/distributed/world.h"

namespace stepop {

/// Assigns parameters to processes for their updates, so that each process only keeps the
/// optimizer's state of its part: ZeRO's first stage (Rajbhandari et al., 2020), by whole
/// parameters as in PyTorch's ZeroRedundancyOptimizer.
class ParameterShards {
 public:
  /// `parameters` are the same, in the same order, in all processes of `world`, which must outlive
  /// this. Each process gets about the same number of bytes: the largest remaining parameter goes
  /// to the process with the fewest bytes.
  ParameterShards(World& world, std::vector<at::Tensor> parameters);

  /// Whether this process updates the parameter at a position.
  bool is_own(size_t position) const { return owners_[position] == world_.rank(); }

  /// Called after each process has updated its part: gives all parameters to all processes. They
  /// keep their memory, and count as changed for autograd.
  void share();

 private:
  void share(int owner, const std::vector<at::Tensor>& parameters);

  World& world_;
  std::vector<at::Tensor> parameters_;
  std::vector<int> owners_;  ///< Ranks by position.
};

/// Distributes parameters of these sizes over `count` processes; returns a rank for each parameter.
std::vector<int> shard_owners(const std::vector<int64_t>& bytes, int count);

}  // namespace stepop
