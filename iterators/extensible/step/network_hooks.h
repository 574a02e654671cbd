#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/logs.h"

namespace stepop::extensible {

/// What a network of an ExtensibleTrainer may do besides its `forward`: derive from this, too, and
/// override what you need. Every network is called, whichever network a step trains. Gradients are
/// disabled, and iterations count from 0. What a hook changes must be a parameter or a registered
/// buffer, so that a run that resumes has it.
class NetworkHooks {
 public:
  virtual ~NetworkHooks() = default;

  /// An iteration of the training begins; with `accumulate`, once for all its batches.
  virtual void update_for_step(int64_t iteration) { (void)iteration; }
  /// A backward pass has ended: of each step that trains, and of each part of a batch.
  virtual void after_backward(int64_t iteration) { (void)iteration; }
  /// The update of a step follows, or was made.
  virtual void before_step(int64_t iteration) { (void)iteration; }
  virtual void after_step(int64_t iteration) { (void)iteration; }

  /// Parameters by the names of their groups. Whenever a step trains this network, the norm of each
  /// group's gradients, before they are clipped, is logged as `<network>_<group>`.
  virtual OrderedMap<std::vector<at::Tensor>> get_grad_norm_parameter_groups() { return {}; }
  /// Numbers for a log of the training, as `<network>_<name>`.
  virtual Scalars get_debug_values(int64_t iteration) { return (void)iteration, Scalars{}; }
  /// Batches of pictures [B, C, H, W] in [-1, 1] that are logged with `visuals`, as
  /// `<network>_<name>`.
  virtual OrderedMap<at::Tensor> visual_dbg(int64_t iteration) {
    return (void)iteration, OrderedMap<at::Tensor>{};
  }
};

}  // namespace stepop::extensible
