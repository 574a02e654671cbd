#pragma once

#include <memory>

#include "runtime/train/distributed/world.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/optim/update.h"

namespace stepop {

/// While it lives, batch normalization in training mode normalizes by the mean and the variance of
/// the examples of all processes, as one process would that had the whole batch: in the forward and
/// in the backward pass the sums of each layer are summed over the processes. It takes the place of
/// PyTorch's operation `batch_norm`, so it holds for every network, TorchScript's included. The
/// backward pass cannot be differentiated again (gradient penalties through such a layer).
///
/// For a single process it does nothing. Only one may live at a time.
class SyncBatchNorm {
 public:
  /// Both must outlive this; `clock` tells of a batch of which this process has no example.
  SyncBatchNorm(World& world, const StepClock& clock);
  ~SyncBatchNorm();
  SyncBatchNorm(const SyncBatchNorm&) = delete;
  SyncBatchNorm& operator=(const SyncBatchNorm&) = delete;

 private:
  struct Registration;
  std::unique_ptr<Registration> registration_;
};

}  // namespace stepop
