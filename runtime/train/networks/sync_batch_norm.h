#pragma once

#include "runtime/train/distributed/world.h"
#include "runtime/train/optim/step_clock.h"

namespace stepop {

/// Replaces PyTorch's operations `batch_norm` and `instance_norm` in this process, once. They
/// compute what they did before, but within a scope of SyncBatchNorm, and refuse, as PyTorch's
/// layers do in Python, to take the variance of one value: running statistics would become NaN.
void replace_normalization();

/// Throws Error, with PyTorch's text, when `input` [B, C, ...] has one value for each channel.
void check_batch_norm(const at::Tensor& input);

/// During a scope of it, batch normalization in training mode uses the mean and the variance of the
/// examples of all processes, as a single process with the whole batch would: the forward and the
/// backward pass add up the sums of each layer over the processes. It replaces PyTorch's operation
/// `batch_norm`, so it works for every network, including TorchScript. The backward pass cannot be
/// differentiated again (gradient penalties through such a layer).
///
/// Does nothing with a single process.
class SyncBatchNorm {
 public:
  /// Both must outlive this. `clock` says when this process has no example of a batch.
  SyncBatchNorm(World& world, const StepClock& clock);
  SyncBatchNorm(const SyncBatchNorm&) = delete;
  SyncBatchNorm& operator=(const SyncBatchNorm&) = delete;

  /// What this thread computes during its lifetime is synchronised by `sync`, and by nothing when
  /// that is null. The backward pass of what it computed is synchronised in any thread.
  class Scope {
   public:
    explicit Scope(SyncBatchNorm* sync);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    SyncBatchNorm* before_;
  };

  /// The one of the innermost scope of this thread; null without one.
  static SyncBatchNorm* of_thread();

  World& world() { return world_; }
  /// Whether this process has an example of the batch.
  bool counts() const { return clock_.counts; }

 private:
  World& world_;
  const StepClock& clock_;
};

}  // namespace stepop
