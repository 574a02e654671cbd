#include "eval_out/eval_statistics.h"

#include <algorithm>

namespace stepop {
namespace {

constexpr int64_t kBlockBytes = 8'000'000;
constexpr int64_t kFirstRows = 16;

void add_length(EvalStatistics& statistics, int64_t length) {
  statistics.shortest = std::min(statistics.shortest.value_or(length), length);
  statistics.longest = std::max(statistics.longest.value_or(length), length);
}

/// Calls `read(first, count)`, which returns the bytes of these rows, for all rows in blocks whose
/// size follows from what the rows before took.
template <class Read>
void for_each_block(int64_t rows, const Read& read) {
  int64_t bytes = 0;
  int64_t count = kFirstRows;
  for (int64_t first = 0; first < rows; first += count) {
    if (first > 0) {
      count = std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(bytes / first, 1), 1, first * 16);
    }
    count = std::min(count, rows - first);
    bytes += read(first, count);
  }
}

void read_ragged(const EvalFile& file, const std::string& key, EvalStatistics& statistics) {
  int64_t values = 0;
  for_each_block(file.rows(), [&](int64_t first, int64_t count) {
    int64_t bytes = 0;
    for (const at::Tensor& row : file.read_ragged(key, first, count)) {
      statistics.numbers.add(row);
      add_length(statistics, row.size(0));
      values += row.size(0);
      bytes += static_cast<int64_t>(row.nbytes());
    }
    return bytes;
  });
  if (file.rows() > 0) {
    statistics.mean_length = static_cast<double>(values) / static_cast<double>(file.rows());
  }
}

void read_texts(const EvalFile& file, const std::string& key, EvalStatistics& statistics) {
  int64_t total = 0;
  for_each_block(file.rows(), [&](int64_t first, int64_t count) {
    int64_t bytes = 0;
    for (const std::string& text : file.read_texts(key, first, count)) {
      add_length(statistics, static_cast<int64_t>(text.size()));
      bytes += static_cast<int64_t>(text.size());
    }
    total += bytes;
    return bytes + count * static_cast<int64_t>(sizeof(std::string));
  });
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
      const int64_t block = file.rows_per_block(key);
      for (int64_t first = 0; first < file.rows(); first += block) {
        statistics.numbers.add(file.read(key, first, std::min(block, file.rows() - first)));
      }
    }
  }
  return statistics;
}

}  // namespace stepop
