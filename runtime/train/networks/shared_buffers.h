#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/train/distributed/world.h"

namespace stepop {

class Networks;

/// Keeps the buffers of networks equal in several processes that train together, after each step:
/// running means and variances of batch normalization become their means over the processes,
/// weighted by examples; every other buffer that a step changes is taken from rank 0. Statistics
/// are known by PyTorch's names, `running_mean` and `running_var`, since the layers of a network
/// from Python are no classes of LibTorch. Does nothing with a single process.
class SharedBuffers {
 public:
  /// Both must outlive this.
  SharedBuffers(World& world, const Networks& networks);

  /// Called by all processes after each training step. `share`: this process's part of the step's
  /// examples.
  void share(double share);
  /// Ignores changes of other buffers so far, such as changes that were undone: called after logs.
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
