#include "eval_out/callbacks/row_values.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/isnan.h>
#include <fmt/format.h>

namespace stepop {
namespace {

/// Of what an example's `get` draws, were it to draw.
constexpr uint64_t kExamplesSeed = 1;

}  // namespace

RowValues::RowValues(const CallbackArguments& arguments, const std::string& key,
                     const std::string& parameter, From from)
    : arguments_(arguments), key_(key) {
  const EvalFile& file = arguments.data_out;
  if (file.rows() == 0) throw Error(fmt::format("{} has no rows", file.path()));
  if (const auto found = file.keys_named(key); !found.empty()) {
    const EvalArray& array = file.array(found[0]);
    if (array.kind != EvalKind::kTensor) {
      throw Error(fmt::format("{} must hold tensors of one shape, found {}", array.key,
                              array.kind == EvalKind::kText ? "texts" : "ragged ones"));
    }
    key_ = name_ = array.key;
    shape_ = array.shape;
    dtype_ = array.dtype;
    return;
  }
  std::string reason;
  try {
    if (from == From::kFileOrDataset && find_in_dataset(key)) return;
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    reason = fmt::format(" ({})", error.what());
  }
  throw Error(fmt::format("no \"{}\" in {}{}{}; the file has: {}; name another key by \"{}\"", key,
                          file.path(), from == From::kFile ? "" : ", nor in the dataset", reason,
                          file.key_list(), parameter));
}

bool RowValues::find_in_dataset(const std::string& key) {
  const Dataset& data = arguments_.data_in;
  name_ = fmt::format("\"{}\" of the dataset", key);
  const at::Tensor index = arguments_.data_out.index(0, 1);
  labels_ = data.labels(key);
  if (labels_.defined()) {
    if (labels_.dim() == 0) throw Error(name_ + " is a single value");
    where_ = Where::kLabels;
    shape_ = labels_.sizes().slice(1).vec();
    dtype_ = labels_.scalar_type();
    return true;
  }
  const int64_t first = index.item<int64_t>();
  if (first < 0 || first >= data.size()) return false;
  Random random(mix_seed({kExamplesSeed, static_cast<uint64_t>(first)}));
  const Batch batch = load_batch(data, std::span(&first, 1), std::span(&random, 1));
  if (!batch.contains(key)) {
    throw Error("its examples have: " + batch.tensors().key_list());
  }
  where_ = Where::kExamples;
  shape_ = batch[key].sizes().slice(1).vec();
  dtype_ = batch[key].scalar_type();
  return true;
}

int64_t RowValues::rows_per_block() const { return rows_of_block(shape_, dtype_); }

at::Tensor RowValues::read(int64_t first, int64_t count) const {
  const EvalFile& file = arguments_.data_out;
  if (where_ == Where::kFile) return file.read(key_, first, count);
  file.throw_if_interrupted();
  if (where_ == Where::kExamples) return read_examples(first, count);
  const at::Tensor index = file.index(first, count);
  if (index.min().item<int64_t>() < 0 || index.max().item<int64_t>() >= labels_.size(0)) {
    throw Error(fmt::format("the dataset's labels \"{}\" of shape {} do not fit the {} rows of {}",
                            key_, shape_text(labels_.sizes().vec()), file.rows(), file.path()));
  }
  return at::index_select(labels_, 0, index);
}

at::Tensor RowValues::read_examples(int64_t first, int64_t count) const {
  const at::Tensor index = arguments_.data_out.index(first, count);
  const auto* indices = index.const_data_ptr<int64_t>();
  const int64_t size = arguments_.data_in.size();
  std::vector<Random> randoms;
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] < 0 || indices[i] >= size) {
      throw Error(fmt::format("{}: the dataset has {} examples", row_text(first + i), size));
    }
    randoms.emplace_back(mix_seed({kExamplesSeed, static_cast<uint64_t>(indices[i])}));
  }
  return load_batch(arguments_.data_in, std::span(indices, static_cast<size_t>(count)), randoms)
      .to(at::kCPU)[key_];
}

void RowValues::refuse_nan(const at::Tensor& values, int64_t first) const {
  if (!values.is_floating_point() && !values.is_complex()) return;
  const at::Tensor rows = at::isnan(values).reshape({values.size(0), -1}).any(1);
  if (!rows.any().item<bool>()) return;
  const int64_t row = first + rows.to(at::kByte).argmax().item<int64_t>();
  throw Error(fmt::format("{} has a NaN in {}", name_, row_text(row)));
}

std::string RowValues::row_text(int64_t row) const {
  const auto example = arguments_.data_out.index(row, 1).item<int64_t>();
  return fmt::format("row {} (example {} of the dataset)", row, example);
}

void check_pair(const RowValues& prediction, const RowValues& target) {
  if (prediction.name() == target.name()) {
    throw Error(fmt::format("prediction and target are both {}; name another key by \"target\"",
                            target.name()));
  }
  if (prediction.shape() != target.shape()) {
    throw Error(fmt::format("{} has the shape {} an example, {} has {}", prediction.name(),
                            shape_text(prediction.shape()), target.name(),
                            shape_text(target.shape())));
  }
}

}  // namespace stepop
