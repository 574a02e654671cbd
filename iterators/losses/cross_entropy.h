#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "runtime/core/log/weighted_mean.h"

namespace stepop {

/// What torch.nn.functional.cross_entropy takes, with its meanings.
struct CrossEntropyOptions {
  int64_t ignore = -100;          ///< Targets that do not count.
  double label_smoothing = 0;     ///< From 0 to 1.
  at::Tensor class_weights = {};  ///< [C], 0 or more; undefined: each class counts 1.
};

/// The mean of torch.nn.functional.cross_entropy, []. Its weight is what PyTorch divides by: the
/// number of targets that count, or with class weights the sum of theirs. `logits` is [B, C, ...];
/// `targets` int64 or uint8 [B, ...], or a probability for each class, [B, C, ...], where all
/// labels count 1.
///
/// Where no target counts, value and gradient are 0, and PyTorch's NaN only until a device has told
/// the weight: an Update takes it as 0.
WeightedMean cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                           const CrossEntropyOptions& options = {});

/// The same for each example of a batch, [B], as for the label of an eval op.
WeightedMean cross_entropy_of_examples(const at::Tensor& logits, const at::Tensor& targets,
                                       const CrossEntropyOptions& options = {});

}  // namespace stepop
