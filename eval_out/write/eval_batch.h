#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval_out/eval_schema.h"

namespace stepop {

/// One batch of one array, on the CPU and in the order of the file, owned by nobody else.
struct EvalColumn {
  at::Tensor values;             ///< [B, ...]; all examples' values behind one another if ragged.
  std::vector<int64_t> lengths;  ///< Of each example, if ragged.
  std::vector<std::string> texts;
};

/// Copies `value`, whose description is `array`, away from its device and its graph. `spare` is a
/// column of an earlier batch, or empty; its memory is used again when it fits: fresh memory costs
/// as much as the copy.
EvalColumn to_column(const EvalArray& array, const EvalValue& value, EvalColumn spare);

/// Rows on their way to the file.
struct EvalBatch {
  int64_t first_row = 0;
  std::vector<int64_t> indices;
  std::vector<EvalColumn> columns;  ///< In the order of the file's arrays.

  /// In memory, about.
  size_t bytes() const;
};

/// The rows of `batches`, which follow each other and are of the same arrays, as one batch.
EvalBatch join_batches(std::span<const EvalBatch> batches);

/// The bytes that `rows` rows of these arrays take; ragged arrays and text as their first batch.
double bytes_of(const EvalColumn& batch, int64_t batch_size, int64_t rows);

}  // namespace stepop
