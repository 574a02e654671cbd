#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/tools/tune/trainee.h"
#include "runtime/tools/tune/tune_steps.h"

namespace stepop {

/// The speed and memory of steps with batches of one size.
struct BatchSizeRow {
  int64_t batch_size = 0;
  double examples_per_second = 0;
  double memory = 0;         ///< The most bytes at any time.
  std::string failure = {};  ///< Why it could not be measured; the numbers are 0 then.
};

/// Measures one size. Throws CandidateFailed and TimeOver.
using MeasureBatchSize = std::function<BatchSizeRow(int64_t batch_size)>;

struct BatchSizeLimits {
  int64_t most = 0;   ///< The number of examples; 0 when it is unknown.
  double memory = 0;  ///< Bytes that a training may have; 0 when only a failure tells.
};

/// Measures 1, 2, 4, ... until a size fails, then sizes between the last two; all until the time is
/// over. A size that would exceed the memory, by the line through the two sizes before it, is not
/// tried: the kernel may end other programs. The rows are in order of size. Throws TimeOver when
/// no size could be measured.
std::vector<BatchSizeRow> measure_batch_sizes(const MeasureBatchSize& measure,
                                              const BatchSizeLimits& limits);

/// The same for a config, each size in processes of its own.
std::vector<BatchSizeRow> tune_batch_size(const TuneOptions& options,
                                          const TraineeOptions& trainees);

/// A line for each size. Below, the largest size that fits, and the size above which speed grows
/// little.
std::string batch_size_table(const std::vector<BatchSizeRow>& rows);

/// Examples a second, and below it memory, over the batch size, as the bytes of a PNG file. Throws
/// Error when no size was measured.
std::string batch_size_picture(const std::vector<BatchSizeRow>& rows);

}  // namespace stepop
