#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "runtime/data/batch.h"

namespace stepop {

/// The classes at `key` of a batch, as cross entropy takes them for `logits` [B, C, ...]: int64
/// [B, ...], each from 0 to C - 1, or -100, which at::cross_entropy_loss leaves out. Throws Error
/// that names the key, the example and what was expected.
///
/// To read values of another device would wait for it: in a training step they are read on the CPU
/// alone, where no gradients are wanted everywhere.
at::Tensor class_targets(const Batch& batch, const std::string& key, const at::Tensor& logits);

}  // namespace stepop
