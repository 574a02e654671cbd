#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <variant>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/weighted_mean.h"

namespace stepop {

/// One output for a batch of B examples: a tensor [B, ...], B tensors of any lengths that agree
/// in all dimensions but the first (ragged), or B texts.
using EvalValue = std::variant<at::Tensor, std::vector<at::Tensor>, std::vector<std::string>>;

/// The outputs of `eval_op` for one batch. A slash in a key makes a group in the HDF5 file.
struct EvalOutputs {
  OrderedMap<EvalValue> outputs = {};
  /// Small values per example, shape [B] each; the mean over the split is logged. An example with a
  /// weight counts by it, such as a text by the number of its tokens:
  /// `{"loss", cross_entropy_of_examples(logits, targets)}`.
  OrderedMap<WeightedMean> labels = {};
};

}  // namespace stepop
