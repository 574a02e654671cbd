#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/train/distributed/world.h"

namespace stepop {

/// Which process updates which parameters, so that each keeps the optimizer's state of its own part
/// alone: ZeRO's first stage (Rajbhandari et al., 2020), by whole parameters as in PyTorch's
/// ZeroRedundancyOptimizer.
class ParameterShards {
 public:
  /// `parameters` are the same, and in the same order, in all processes of `world`, which must
  /// outlive this. Each process gets about as many bytes as the others: the largest parameter that
  /// is left goes to the process that has least.
  ParameterShards(World& world, std::vector<at::Tensor> parameters);

  /// Whether the parameter at a position is this process's to update.
  bool is_own(size_t position) const { return owners_[position] == world_.rank(); }

  /// After each process has updated its own: gives all parameters to all. They keep their memory,
  /// and count as changed for autograd.
  void share();

 private:
  void share(int owner, const std::vector<at::Tensor>& parameters);

  World& world_;
  std::vector<at::Tensor> parameters_;
  std::vector<int> owners_;  ///< By position.
};

/// The ranks of `count` processes for parameters of these sizes.
std::vector<int> shard_owners(const std::vector<int64_t>& bytes, int count);

}  // namespace stepop
