#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval_out/write/eval_arrays.h"

namespace stepop {

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

}  // namespace stepop
