#pragma once

#include <memory>

#include "runtime/train/distributed/world.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/optim/update.h"

namespace stepop {

/// During its lifetime, batch normalization in training mode uses the mean and the variance of the
/// examples of all processes, as a single process with the whole batch would: the forward and the
/// backward pass add up the sums of each layer over the processes. It replaces PyTorch's operation
/// `batch_norm`, so it works for every network, including TorchScript. The backward pass cannot be
/// differentiated again (gradient penalties through such a layer).
///
/// Does nothing with a single process. Only one may exist at a time.
class SyncBatchNorm {
 public:
  /// Both must outlive this. `clock` says when this process has no example of a batch.
  SyncBatchNorm(World& world, const StepClock& clock);
  ~SyncBatchNorm();
  SyncBatchNorm(const SyncBatchNorm&) = delete;
  SyncBatchNorm& operator=(const SyncBatchNorm&) = delete;

 private:
  struct Registration;
  std::unique_ptr<Registration> registration_;
};

}  // namespace stepop
