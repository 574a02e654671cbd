#include "eval_out/write/eval_arrays.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_attributes.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "runtime/core/base/error.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {
namespace {

/// HDF5 makes and extends its heaps of strings in steps of up to this size.
constexpr int64_t kHeapBytes = int64_t{64} << 10;

constexpr int64_t kMinRaggedChunkBytes = int64_t{64} << 10;
constexpr int64_t kMaxRaggedChunkBytes = int64_t{1} << 30;  // HDF5 allows 4 GiB
constexpr int64_t kChunks = 32;  // a chunk index of 64 entries is one block, never split
/// When the array grows, its chunk index grows by less than this.
constexpr int64_t kIndexBytes = int64_t{64} << 10;

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
    constexpr size_t kOverhead = 32;  // for each string in a heap
    size_t bytes = 0;
    for (const auto& text : column.texts) bytes += text.size() + kOverhead;
    // A heap may stay half empty when the next string does not fit.
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

/// The length of `values` is known only at the end. Growing changes the chunk index, and if the
/// process is killed while an index is written, the file cannot be read. So `values` gets room for
/// the whole evaluation, estimated from the first batch; grows by half when that was too little,
/// with a flush before and after; and is cut to its length at the end.
class RaggedWriter : public EvalArrayWriter {
 public:
  RaggedWriter(hid_t file, const EvalArray& array, int64_t rows, int64_t expected_values)
      : type_(hdf5_type(array.dtype)),
        shape_(array.shape),
        capacity_(std::max<int64_t>(expected_values, 1)),
        group_(H5Gcreate2(file, array.key.c_str(), link_properties(), H5P_DEFAULT, H5P_DEFAULT),
               H5Gclose, "cannot create"),
        offsets_(create_numbers(group_, "offsets", rows + 1)),
        values_(create_values()) {
    create_attribute(group_, "ragged", true);
  }

  RaggedWriter(hid_t file, const EvalArray& array, int64_t rows)
      : type_(hdf5_type(array.dtype)),
        shape_(array.shape),
        capacity_(0),
        total_(read_offset(file, array.key, rows)),
        group_(H5Gopen2(file, array.key.c_str(), H5P_DEFAULT), H5Gclose, "cannot open"),
        offsets_(open_dataset(group_, "offsets")),
        values_(open_dataset(group_, "values", values_access())) {
    const Hdf5Id space(H5Dget_space(values_), H5Sclose, "HDF5 dataspace");
    std::vector<hsize_t> lengths(shape_.size() + 1);
    H5Sget_simple_extent_dims(space, lengths.data(), nullptr);
    capacity_ = static_cast<int64_t>(lengths[0]);
    const std::vector<hsize_t> chunk = chunk_lengths(values_);
    chunk_values_ = static_cast<int64_t>(chunk[0]);
    value_bytes_ = static_cast<int64_t>(H5Tget_size(type_));
    for (size_t i = 1; i < chunk.size(); ++i) value_bytes_ *= static_cast<int64_t>(chunk[i]);
  }

  int64_t growth(const EvalColumn& column) const override {
    const int64_t capacity = capacity_for(column);
    if (capacity == capacity_) return 0;
    // The chunks, one of them partly used, and their index.
    return (capacity - capacity_ + chunk_values_) * value_bytes_ + kIndexBytes;
  }

  void write(int64_t first, const EvalColumn& column) override {
    const int64_t count = column.values.size(0);
    if (const int64_t capacity = capacity_for(column); capacity > capacity_) resize(capacity);
    write_rows(values_, type_, total_, lengths_of(count, shape_), column.values.const_data_ptr());
    std::vector<int64_t> offsets(column.lengths.size());
    std::partial_sum(column.lengths.begin(), column.lengths.end(), offsets.begin());
    for (auto& offset : offsets) offset += total_;
    write_numbers(offsets_, first + 1, offsets);
    total_ += count;
  }

  void finish() override { resize(total_); }

 private:
  int64_t capacity_for(const EvalColumn& column) const {
    const int64_t needed = total_ + column.values.size(0);
    return needed <= capacity_ ? capacity_ : std::max(needed, capacity_ + capacity_ / 2);
  }

  /// The offset at which the values of row `rows` begin.
  static int64_t read_offset(hid_t file, const std::string& key, int64_t rows) {
    const Hdf5Id offsets = open_dataset(file, key + "/offsets");
    int64_t offset = 0;
    const Hdf5Id in_file = hdf5_rows(offsets, static_cast<hsize_t>(rows), {1});
    check_hdf5(
        H5Dread(offsets, hdf5_type(at::kLong), hdf5_space({1}), in_file, H5P_DEFAULT, &offset),
        "cannot read the offsets");
    return offset;
  }

  /// Without a chunk cache, every row is written directly into the file.
  static Hdf5Id values_access() {
    Hdf5Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "HDF5 properties");
    check_hdf5(H5Pset_chunk_cache(access, 0, 0, 0), "HDF5 properties");
    return access;
  }

  Hdf5Id create_values() {
    std::vector<hsize_t> longest = lengths_of(0, shape_);
    std::vector<hsize_t> chunk = longest;
    int64_t value_bytes = static_cast<int64_t>(H5Tget_size(type_));
    for (size_t i = 1; i < chunk.size(); ++i) {
      longest[i] = chunk[i] = std::max<hsize_t>(chunk[i], 1);  // a chunk has no dimension of 0
      value_bytes *= static_cast<int64_t>(chunk[i]);
    }
    const auto values_in = [&](int64_t bytes) { return std::max<int64_t>(bytes / value_bytes, 1); };
    longest[0] = H5S_UNLIMITED;
    chunk[0] = static_cast<hsize_t>(std::clamp(
        capacity_ / kChunks + 1, values_in(kMinRaggedChunkBytes), values_in(kMaxRaggedChunkBytes)));
    value_bytes_ = value_bytes;
    chunk_values_ = static_cast<int64_t>(chunk[0]);

    const Hdf5Id creation = creation_properties(H5D_FILL_TIME_NEVER);
    check_hdf5(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()),
               "HDF5 properties");
    const std::vector<hsize_t> lengths = lengths_of(capacity_, shape_);
    const Hdf5Id space(
        H5Screate_simple(static_cast<int>(lengths.size()), lengths.data(), longest.data()),
        H5Sclose, "HDF5 dataspace");
    return create_dataset(group_, "values", type_, space, creation, values_access());
  }

  void resize(int64_t count) {
    const std::vector<hsize_t> lengths = lengths_of(count, shape_);
    check_hdf5(H5Fflush(values_, H5F_SCOPE_LOCAL), "cannot write");
    check_hdf5(H5Dset_extent(values_, lengths.data()), "cannot write");
    check_hdf5(H5Fflush(values_, H5F_SCOPE_LOCAL), "cannot write");
    capacity_ = count;
  }

  Hdf5Id type_;
  std::vector<int64_t> shape_;
  int64_t capacity_;
  int64_t value_bytes_ = 0;
  int64_t chunk_values_ = 0;
  int64_t total_ = 0;  ///< The number of written values.
  Hdf5Id group_;
  Hdf5Id offsets_;
  Hdf5Id values_;
};

/// Overwrites a part of a file with zeros, without the library.
void zero_bytes(const std::string& path, int64_t begin, int64_t count) {
  OpenFile file = open_file(path, O_WRONLY, "open " + path);
  const std::string zeros(size_t{1} << 16, '\0');
  int reason = ::lseek(file.number(), begin, SEEK_SET) < 0 ? errno : 0;
  for (int64_t rest = count; rest > 0 && reason == 0; rest -= static_cast<int64_t>(zeros.size())) {
    size_t written = 0;
    reason = write_all(file, std::string_view(zeros).substr(0, static_cast<size_t>(rest)), written);
  }
  const int closed = file.close();
  if (reason == 0) reason = closed;
  if (reason != 0) fail_file("write " + path, reason);
}

/// Sets the references from row `rows` on to null: before HDF5 writes a text, it reads the old
/// reference, which may point to a heap that a killed process did not write.
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

}  // namespace

int64_t EvalArrayWriter::growth(const EvalColumn&) const { return 0; }

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
  return std::make_unique<RaggedWriter>(file, array, rows, expected);
}

std::unique_ptr<EvalArrayWriter> open_array(hid_t file, const std::string& path,
                                            const EvalArray& array, int64_t rows) {
  if (array.kind == EvalKind::kRagged) return std::make_unique<RaggedWriter>(file, array, rows);
  Hdf5Id dataset = open_dataset(file, array.key);
  if (array.kind == EvalKind::kTensor) {
    return std::make_unique<TensorWriter>(array, std::move(dataset));
  }
  forget_rows(path, dataset, rows);
  return std::make_unique<TextWriter>(std::move(dataset));
}

}  // namespace stepop
