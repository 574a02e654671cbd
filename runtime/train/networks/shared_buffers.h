#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/train/distributed/world.h"

namespace stepop {

class Networks;

/// The buffers of networks in several processes that train together, which each step makes the same
/// in all: running means and variances of batch normalization become their means over the
/// processes, weighted by examples; all others that a step writes to, rank 0's. For a single
/// process it does nothing.
class SharedBuffers {
 public:
  /// Both must outlive this.
  SharedBuffers(World& world, const Networks& networks);

  /// To be called by all after each training step. `share`: the part of its examples that this
  /// process had.
  void share(double share);
  /// What was written to others since then, and put back, is no step's: to be called after logs.
  void skip_writes();

 private:
  struct Other {
    at::Tensor buffer;
    int64_t version;
  };

  World& world_;
  std::vector<at::Tensor> statistics_;
  std::vector<Other> others_;
};

}  // namespace stepop
