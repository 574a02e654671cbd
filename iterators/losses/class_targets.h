#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "runtime/data/batch.h"

namespace stepop {

/// The label that no loss and no metric counts, as in torch.nn.functional.cross_entropy.
inline constexpr int64_t kLeftOutLabel = -100;

/// The classes at `key` of a batch, for cross entropy with `logits` [B, C, ...]: int64 [B, ...],
/// each from 0 to C - 1, or -100 where a label does not count; or soft labels, such as of
/// MixedImages: float [B, C, ...], a probability for each class. The batch may have classes as
/// bytes, and another label that does not count, `ignore`, such as 255; -100 never counts. Throws
/// Error with the key, the example and the expected form.
///
/// Reading values from another device would wait for it: training steps check values on the CPU
/// only; without gradients, and in the checks before a run, values on every device are checked.
at::Tensor class_targets(const Batch& batch, const std::string& key, const at::Tensor& logits,
                         int64_t ignore = kLeftOutLabel);

/// The classes of targets, int64 [B, ...]: the most probable class of soft labels.
at::Tensor hard_classes(const at::Tensor& targets);

}  // namespace stepop
