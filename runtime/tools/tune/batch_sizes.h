#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/tools/tune/trainee.h"
#include "runtime/tools/tune/tune_steps.h"

namespace stepop {

/// What steps cost with batches of one size.
struct BatchSizeRow {
  int64_t batch_size = 0;
  double examples_per_second = 0;
  double memory = 0;         ///< Bytes, the most that there were.
  std::string failure = {};  ///< Why it could not be measured; the others are 0 then.
};

/// Measures one size. Throws CandidateFailed.
using MeasureBatchSize = std::function<BatchSizeRow(int64_t batch_size)>;

struct BatchSizeLimits {
  int64_t most = 0;        ///< Examples that there are; 0 where nobody knows.
  double memory = 0;       ///< Bytes that a training may have; 0 where only a failure tells.
  double time_limit = 60;  ///< Seconds; no size is begun that would not be over then.
  std::function<double()> seconds;  ///< Since the beginning.
};

/// 1, 2, 4, ... as long as they can be trained with, then sizes between the largest of these and
/// the first that could not. A size that would exceed the memory, by the line through the two
/// before it, is not tried: the kernel may end other programs. By their sizes.
std::vector<BatchSizeRow> measure_batch_sizes(const MeasureBatchSize& measure,
                                              const BatchSizeLimits& limits);

/// The same for a config, each size in processes of its own.
std::vector<BatchSizeRow> tune_batch_size(const TuneOptions& options,
                                          const TraineeOptions& trainees);

/// A line for each size, and in words the largest that fits and from which on a larger one brings
/// little.
std::string batch_size_table(const std::vector<BatchSizeRow>& rows);

/// Examples a second, and below it memory, over the batch size, as the bytes of a PNG file. Throws
/// Error when none could be measured.
std::string batch_size_picture(const std::vector<BatchSizeRow>& rows);

}  // namespace stepop
