#include "eval_out/write/eval_batch.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <cstring>
#include <utility>
#include <variant>

namespace stepop {
namespace {

/// Copied even when the tensor is on the CPU already: the caller may change it while the copy waits
/// to be written.
at::Tensor to_cpu(const at::Tensor& tensor, at::ScalarType type, at::Tensor spare) {
  const bool is_far = !tensor.is_cpu();  // memory that is pinned is copied behind the evaluation
  if (!spare.defined() || spare.sizes() != tensor.sizes() || (is_far && !spare.is_pinned())) {
    spare = at::empty(tensor.sizes(), at::TensorOptions().dtype(type).pinned_memory(is_far));
  }
  if (is_far) return spare.copy_(tensor, /*non_blocking=*/true);
  const bool is_plain = tensor.is_cpu() && tensor.scalar_type() == type && tensor.is_contiguous() &&
                        !tensor.is_conj() && !tensor.is_neg();
  if (!is_plain) return spare.copy_(tensor);
  // copy_ would wake LibTorch's threads, and on a busy machine waiting for the last thread takes
  // longer than copying with one thread.
  if (tensor.nbytes() > 0) {
    std::memcpy(spare.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
  }
  return spare;
}

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

EvalColumn to_column(const EvalArray& array, const EvalValue& value, EvalColumn spare) {
  const c10::InferenceMode no_graph;
  EvalColumn column;
  if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
    column.values = to_cpu(*tensor, array.dtype, std::move(spare.values));
  } else if (const auto* tensors = std::get_if<std::vector<at::Tensor>>(&value)) {
    for (const auto& example : *tensors) column.lengths.push_back(example.size(0));
    column.values = to_cpu(at::cat(*tensors), array.dtype, std::move(spare.values));
  } else {
    column.texts = std::get<std::vector<std::string>>(value);
  }
  return column;
}

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

double bytes_of(const EvalColumn& batch, int64_t batch_size, int64_t rows) {
  double bytes = batch.values.defined() ? static_cast<double>(batch.values.nbytes()) : 0.0;
  bytes += 8.0 * static_cast<double>(batch.lengths.size());
  for (const auto& text : batch.texts) bytes += 16.0 + static_cast<double>(text.size());
  return bytes * static_cast<double>(rows) / static_cast<double>(batch_size);
}

}  // namespace stepop
