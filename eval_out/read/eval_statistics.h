#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "eval_out/read/eval_reader.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {

/// What the valid rows of one array of an evaluation hold.
struct EvalStatistics {
  TensorStatistics numbers;  ///< Of all values; nothing for text.

  /// Of ragged arrays in values, of text in bytes; none without rows and for other arrays.
  std::optional<int64_t> shortest;
  std::optional<int64_t> longest;
  double mean_length = 0;

  /// Space in the file: as stored, so smaller than the numbers when it is compressed.
  int64_t stored_bytes = 0;
};

/// Reads the array once, in blocks of about 8 MB (one row, where a row is larger). Throws Error as
/// EvalFile does.
EvalStatistics statistics_of(const EvalFile& file, const std::string& key);

}  // namespace stepop
