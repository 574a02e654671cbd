#include "eval_out/write/eval_arrays.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <cstring>
#include <utility>

#include "eval_out/hdf5/eval_dataset.h"
#include "eval_out/hdf5/hdf5_bytes.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "eval_out/write/eval_ragged.h"

namespace stepop {
namespace {

/// HDF5 makes its heaps of strings, and extends them, by up to this.
constexpr int64_t kHeapBytes = int64_t{64} << 10;

class TensorWriter : public EvalArrayWriter {
 public:
  TensorWriter(const EvalArray& array, Hdf5Id dataset)
      : type_(hdf5_type(array.dtype)), shape_(array.shape), dataset_(std::move(dataset)) {}

  TensorWriter(hid_t file, const EvalArray& array, int64_t rows)
      : type_(hdf5_type(array.dtype)),
        shape_(array.shape),
        dataset_(create_dataset(file, array.key, type_, hdf5_space(lengths_of(rows, array.shape)),
                                creation_properties(H5D_FILL_TIME_NEVER))) {}

  void write(int64_t first, const EvalColumn& column) override {
    write_rows(dataset_, type_, first, lengths_of(column.values.size(0), shape_),
               column.values.const_data_ptr());
  }

 private:
  Hdf5Id type_;
  std::vector<int64_t> shape_;
  Hdf5Id dataset_;
};

class TextWriter : public EvalArrayWriter {
 public:
  explicit TextWriter(Hdf5Id dataset) : type_(hdf5_text_type()), dataset_(std::move(dataset)) {}

  TextWriter(hid_t file, const EvalArray& array, int64_t rows)
      : type_(hdf5_text_type()),
        dataset_(create_dataset(file, array.key, type_, hdf5_space(lengths_of(rows, {})),
                                creation_properties(H5D_FILL_TIME_IFSET))) {}

  int64_t growth(const EvalColumn& column) const override {
    constexpr size_t kOverhead = 32;  // of a string in a heap
    size_t bytes = 0;
    for (const auto& text : column.texts) bytes += text.size() + kOverhead;
    // A heap may stay half empty, when the next string does not fit.
    return kHeapBytes + 2 * static_cast<int64_t>(bytes);
  }

  void write(int64_t first, const EvalColumn& column) override {
    std::vector<const char*> texts;
    for (const auto& text : column.texts) texts.push_back(text.c_str());
    write_rows(dataset_, type_, first, {texts.size()}, static_cast<const void*>(texts.data()));
  }

 private:
  Hdf5Id type_;
  Hdf5Id dataset_;
};

/// Makes null references of those from row `rows` on: before HDF5 writes a text it looks at the one
/// that was there, which may point at a heap that a killed process did not write.
void forget_rows(const std::string& path, hid_t texts, int64_t rows) {
  const haddr_t begin = H5Dget_offset(texts);
  const hsize_t size = H5Dget_storage_size(texts);
  const Hdf5Id space(H5Dget_space(texts), H5Sclose, "HDF5 dataspace");
  const int64_t count = check_hdf5(H5Sget_simple_extent_npoints(space), "HDF5 dataspace");
  if (rows >= count) return;
  if (begin == HADDR_UNDEF) throw Error("texts have no place in the file");
  const int64_t row_bytes = static_cast<int64_t>(size) / count;
  zero_bytes(path, static_cast<int64_t>(begin) + rows * row_bytes, (count - rows) * row_bytes);
}

/// Copied even when it is on the CPU already: the caller may write into it while it waits here.
at::Tensor to_cpu(const at::Tensor& tensor, at::ScalarType type, at::Tensor spare) {
  if (!spare.defined() || spare.sizes() != tensor.sizes()) {
    spare = at::empty(tensor.sizes(), at::TensorOptions().dtype(type));
  }
  const bool is_plain = tensor.is_cpu() && tensor.scalar_type() == type && tensor.is_contiguous() &&
                        !tensor.is_conj() && !tensor.is_neg();
  if (!is_plain) return spare.copy_(tensor);
  // copy_ wakes LibTorch's threads, and on a busy machine waits for the last of them for longer
  // than one thread takes.
  if (tensor.nbytes() > 0) {
    std::memcpy(spare.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
  }
  return spare;
}

}  // namespace

int64_t EvalArrayWriter::growth(const EvalColumn&) const { return 0; }

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

std::unique_ptr<EvalArrayWriter> create_array(hid_t file, const EvalArray& array, int64_t rows,
                                              const EvalColumn& batch, int64_t batch_size) {
  switch (array.kind) {
    case EvalKind::kTensor:
      return std::make_unique<TensorWriter>(file, array, rows);
    case EvalKind::kText:
      return std::make_unique<TextWriter>(file, array, rows);
    case EvalKind::kRagged:
      break;
  }
  const double per_row =
      static_cast<double>(batch.values.size(0)) / static_cast<double>(batch_size);
  const auto expected = static_cast<int64_t>(1.25 * per_row * static_cast<double>(rows));
  return create_ragged(file, array, rows, expected);
}

std::unique_ptr<EvalArrayWriter> open_array(hid_t file, const std::string& path,
                                            const EvalArray& array, int64_t rows) {
  if (array.kind == EvalKind::kRagged) return open_ragged(file, array, rows);
  Hdf5Id dataset = open_dataset(file, array.key);
  if (array.kind == EvalKind::kTensor) {
    return std::make_unique<TensorWriter>(array, std::move(dataset));
  }
  forget_rows(path, dataset, rows);
  return std::make_unique<TextWriter>(std::move(dataset));
}

double bytes_of(const EvalColumn& batch, int64_t batch_size, int64_t rows) {
  double bytes = batch.values.defined() ? static_cast<double>(batch.values.nbytes()) : 0.0;
  bytes += 8.0 * static_cast<double>(batch.lengths.size());
  for (const auto& text : batch.texts) bytes += 16.0 + static_cast<double>(text.size());
  return bytes * static_cast<double>(rows) / static_cast<double>(batch_size);
}

}  // namespace stepop
