#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval_out/eval_schema.h"

namespace stepop {

/// One batch of one array, on the CPU and in the order of the file; its tensors are not shared.
struct EvalColumn {
  at::Tensor values;             ///< [B, ...]; for ragged arrays, all examples' values one after
                                 ///< another.
  std::vector<int64_t> lengths;  ///< Each example's length, for ragged arrays.
  std::vector<std::string> texts;
};

/// Copies `value`, whose description is `array`, away from its device and its graph. A copy from a
/// device other than the CPU may still be under way, in the order of its stream. `spare` is a
/// column of an earlier batch, or empty; its memory is reused when it fits, because fresh memory
/// costs as much as the copy.
EvalColumn to_column(const EvalArray& array, const EvalValue& value, EvalColumn spare);

/// Rows on their way to the file.
struct EvalBatch {
  int64_t first_row = 0;
  std::vector<int64_t> indices;
  std::vector<EvalColumn> columns;   ///< In the order of the file's arrays.
  std::optional<c10::Event> copied;  ///< When the columns have their values; nothing: they do.

  /// The approximate size in memory.
  size_t bytes() const;
};

/// The rows of `batches`, which follow each other and have the same arrays, as one batch.
EvalBatch join_batches(std::span<const EvalBatch> batches);

/// The bytes that `rows` rows of an array take; for ragged arrays and text, estimated from the
/// first batch.
double bytes_of(const EvalColumn& batch, int64_t batch_size, int64_t rows);

}  // namespace stepop
