#include "eval_out/write/eval_batch.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <cstring>

namespace stepop {
namespace {

/// at::cat would wake LibTorch's threads, which belong to the evaluation.
at::Tensor join_values(std::span<const EvalBatch> batches, size_t column) {
  std::vector<int64_t> sizes = batches[0].columns[column].values.sizes().vec();
  sizes[0] = 0;
  for (const auto& batch : batches) sizes[0] += batch.columns[column].values.size(0);
  at::Tensor joined = at::empty(sizes, batches[0].columns[column].values.options());
  auto* target = static_cast<char*>(joined.mutable_data_ptr());
  for (const auto& batch : batches) {
    const at::Tensor& values = batch.columns[column].values;
    if (values.nbytes() == 0) continue;
    std::memcpy(target, values.const_data_ptr(), values.nbytes());
    target += values.nbytes();
  }
  return joined;
}

template <class Value>
void append(std::vector<Value>& target, const std::vector<Value>& values) {
  target.insert(target.end(), values.begin(), values.end());
}

}  // namespace

size_t EvalBatch::bytes() const {
  size_t bytes = indices.size() * sizeof(int64_t);
  for (const auto& column : columns) {
    if (column.values.defined()) bytes += column.values.nbytes();
    bytes += column.lengths.size() * sizeof(int64_t);
    for (const auto& text : column.texts) bytes += sizeof(std::string) + text.size();
  }
  return bytes;
}

EvalBatch join_batches(std::span<const EvalBatch> batches) {
  const c10::InferenceMode no_graph;
  EvalBatch joined;
  joined.first_row = batches[0].first_row;
  joined.columns.resize(batches[0].columns.size());
  for (const auto& batch : batches) append(joined.indices, batch.indices);
  for (size_t i = 0; i < joined.columns.size(); ++i) {
    EvalColumn& column = joined.columns[i];
    if (batches[0].columns[i].values.defined()) column.values = join_values(batches, i);
    for (const auto& batch : batches) {
      append(column.lengths, batch.columns[i].lengths);
      append(column.texts, batch.columns[i].texts);
    }
  }
  return joined;
}

}  // namespace stepop
