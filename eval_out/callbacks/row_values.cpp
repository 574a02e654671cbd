#include "eval_out/callbacks/row_values.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/isnan.h>
#include <fmt/format.h>

#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/error.h"

namespace stepop {

RowValues::RowValues(const CallbackArguments& arguments, const std::string& key,
                     const std::string& parameter, From from, Lengths lengths)
    : arguments_(arguments), key_(key) {
  const EvalFile& file = arguments.data_out;
  if (file.rows() == 0) throw Error(fmt::format("{} has no rows", file.path()));
  if (const auto found = file.keys_named(key); !found.empty()) {
    const EvalArray& array = file.array(found[0]);
    is_ragged_ = array.kind == EvalKind::kRagged && lengths == Lengths::kAny;
    if (array.kind != EvalKind::kTensor && !is_ragged_) {
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
  const Batch batch = arguments_.examples(0, 1);
  if (!batch.contains(key)) {
    throw Error("its examples have: " + batch.tensors().key_list());
  }
  where_ = Where::kExamples;
  shape_ = batch[key].sizes().slice(1).vec();
  dtype_ = batch[key].scalar_type();
  return true;
}

int64_t RowValues::rows_per_block() const {
  constexpr int64_t kRaggedRows = 1000;
  return is_ragged_ ? kRaggedRows : rows_of_block(shape_, dtype_);
}

at::Tensor RowValues::read(int64_t first, int64_t count) const {
  const EvalFile& file = arguments_.data_out;
  if (is_ragged_) return at::cat(file.read_ragged(key_, first, count));
  if (where_ == Where::kFile) return file.read(key_, first, count);
  file.throw_if_interrupted();
  if (where_ == Where::kExamples) return arguments_.examples(first, count)[key_];
  const at::Tensor index = file.index(first, count);
  if (index.min().item<int64_t>() < 0 || index.max().item<int64_t>() >= labels_.size(0)) {
    throw Error(fmt::format("the dataset's labels \"{}\" of shape {} do not fit the {} rows of {}",
                            key_, shape_text(labels_.sizes().vec()), file.rows(), file.path()));
  }
  return at::index_select(labels_, 0, index);
}

at::Tensor RowValues::read_counting(int64_t first, int64_t count) const {
  return is_in_file() ? arguments_.data_out.read_counting(key_, first, count) : at::Tensor();
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

void check_images(const RowValues& values, Channels channels) {
  const auto& shape = values.shape();
  const bool is_any = channels == Channels::kAny;
  const bool is_image =
      shape.size() == 2 || (shape.size() == 3 && (is_any || shape[0] == 1 || shape[0] == 3));
  const bool is_number = c10::isFloatingType(values.dtype()) || values.dtype() == at::kByte;
  bool is_empty = false;
  for (const int64_t length : shape) is_empty = is_empty || length == 0;
  if (is_image && is_number && !is_empty) return;
  throw Error(
      fmt::format("{} must hold images, [C, H, W]{} or [H, W], of floats in "
                  "[-1, 1] or of uint8; found {} {}",
                  values.name(), is_any ? "" : " with C = 1 or 3", type_name(values.dtype()),
                  shape_text(shape)));
}

at::Tensor to_images(const at::Tensor& rows) {
  at::Tensor images = rows.dim() == 3 ? rows.unsqueeze(1) : rows;
  const bool are_bytes = images.scalar_type() == at::kByte;
  images = images.to(at::kFloat);
  return are_bytes ? images.sub_(127.5).mul_(1.0 / 127.5) : images;
}

}  // namespace stepop
