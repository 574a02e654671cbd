#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "runtime/data/batch.h"

namespace stepop {

/// The classes at `key` of a batch, for cross entropy with `logits` [B, C, ...]: int64 [B, ...],
/// each from 0 to C - 1, or -100, which at::cross_entropy_loss ignores; or soft labels, such as of
/// MixedImages: float [B, C, ...], a probability for each class. Throws Error with the key, the
/// example and the expected form.
///
/// Reading values from another device would wait for it: training steps check values on the CPU
/// only; without gradients, and in the checks before a run, values on every device are checked.
at::Tensor class_targets(const Batch& batch, const std::string& key, const at::Tensor& logits);

/// The classes of targets, int64 [B, ...]: the most probable class of soft labels.
at::Tensor hard_classes(const at::Tensor& targets);

}  // namespace stepop
