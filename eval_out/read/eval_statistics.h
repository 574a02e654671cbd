#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "eval_out/read/eval_reader.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {

/// Statistics of the valid rows of one array of an evaluation.
struct EvalStatistics {
  TensorStatistics numbers;  ///< The statistics of all values; none for text.

  /// The rows of a label whose weight is 0: their values are left out.
  int64_t rows_without_weight = 0;

  /// The shortest and longest row: in values for ragged arrays, in bytes for text; empty without
  /// rows and for other arrays.
  std::optional<int64_t> shortest;
  std::optional<int64_t> longest;
  double mean_length = 0;

  /// The space in the file, after compression.
  int64_t stored_bytes = 0;
};

/// Reads the array once, in blocks of about 8 MB (or one row, if a row is larger). Throws Error as
/// EvalFile does.
EvalStatistics statistics_of(const EvalFile& file, const std::string& key);

}  // namespace stepop
