#include "eval_out/read/eval_statistics.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr int64_t kLengthsAtOnce = 1'000'000;

void add_length(EvalStatistics& statistics, int64_t length) {
  statistics.shortest = std::min(statistics.shortest.value_or(length), length);
  statistics.longest = std::max(statistics.longest.value_or(length), length);
}

void read_ragged(const EvalFile& file, const std::string& key, EvalStatistics& statistics) {
  const EvalArray& array = file.array(key);
  const int64_t block = rows_of_block(array.shape, array.dtype);  // the number of values in a block
  int64_t values = 0;
  const auto read = [&](int64_t first, int64_t count) {
    for (const at::Tensor& row : file.read_ragged(key, first, count)) statistics.numbers.add(row);
  };
  for_each_block(file.rows(), kLengthsAtOnce, [&](int64_t first, int64_t count) {
    int64_t begin = first;
    int64_t waiting = 0;
    int64_t row = first;
    for (const int64_t length : file.read_lengths(key, first, count)) {
      if (waiting + length > block && row > begin) {
        read(begin, row - begin);
        begin = row;
        waiting = 0;
      }
      waiting += length;
      values += length;
      add_length(statistics, length);
      ++row;
    }
    read(begin, row - begin);
  });
  if (file.rows() > 0) {
    statistics.mean_length = static_cast<double>(values) / static_cast<double>(file.rows());
  }
}

/// Texts: their lengths are known without reading them.
void read_texts(const EvalFile& file, const std::string& key, EvalStatistics& statistics) {
  int64_t total = 0;
  for_each_block(file.rows(), kLengthsAtOnce, [&](int64_t first, int64_t count) {
    for (const int64_t length : file.read_lengths(key, first, count)) {
      add_length(statistics, length);
      total += length;
    }
  });
  // Many references to one long text could take hours to read.
  if (total > file.file_bytes()) {
    throw Error(fmt::format("{}: {}: the file is damaged: its texts are longer than the file",
                            file.path(), key));
  }
  if (file.rows() > 0) {
    statistics.mean_length = static_cast<double>(total) / static_cast<double>(file.rows());
  }
  statistics.stored_bytes += total;
}

}  // namespace

EvalStatistics statistics_of(const EvalFile& file, const std::string& key) {
  EvalStatistics statistics;
  statistics.stored_bytes = file.stored_bytes(key);
  switch (file.array(key).kind) {
    case EvalKind::kRagged:
      read_ragged(file, key, statistics);
      break;
    case EvalKind::kText:
      read_texts(file, key, statistics);
      break;
    case EvalKind::kTensor: {
      for_each_block(file.rows(), file.rows_per_block(key), [&](int64_t first, int64_t count) {
        const at::Tensor values = file.read(key, first, count);
        const at::Tensor counting = file.read_counting(key, first, count);
        if (!counting.defined()) return statistics.numbers.add(values);
        const at::Tensor rows = counting.nonzero().squeeze(1);
        statistics.rows_without_weight += count - rows.size(0);
        statistics.numbers.add(values.index_select(0, rows));
      });
    }
  }
  return statistics;
}

}  // namespace stepop
